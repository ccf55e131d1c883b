import { describe, expect, test } from "vitest";
import { createSlackApi } from "../../../../adapters/slack/api/client.ts";
import { createSingleWorkspace } from "../../../../adapters/slack/install/single-workspace.ts";
import { startSlack } from "../../../simulators/slack/slack.ts";
import { silent } from "../../../support/log.ts";
import { signal, startAdapter, TRANSPORTS } from "../stage.ts";

async function start(botToken?: string) {
  const slack = await startSlack();
  const token = botToken ?? slack.botToken;
  const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf: async () => token, now: slack.now });
  return { slack, single: createSingleWorkspace(token, api, silent) };
}

describe("the workspace of a bot token", () => {
  test("is told by Slack, and is the only one", async () => {
    const { slack, single } = await start();
    expect(single.sole?.()).toBeUndefined();
    const workspace = await single.open(signal);
    const { id, bot, botToken } = slack.workspace;
    expect(workspace).toEqual({ teamId: id, isSole: true, botUserId: bot.id, botId: bot.botId, token: botToken });
    expect(await single.find(id, signal)).toEqual(workspace);
    expect(await single.find("T9", signal)).toBeUndefined();
    expect(single.sole?.()).toEqual(workspace);
  });

  test("is asked for also by what is written before the adapter listens", async () => {
    const { slack, single } = await start();
    const { id, bot } = slack.workspace;
    expect(await single.find(id, signal)).toMatchObject({ botId: bot.botId });
    await single.find(id, signal);
    expect(slack.requests.map(({ method }) => method)).toEqual(["auth.test"]);
  });

  test("is asked for again while Slack is out of reach", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { status: 503 });
    expect(await single.open(signal)).toMatchObject({ teamId: slack.workspace.id });
  });

  test("is known also where only the bot's user is told", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { isDone: true, omits: ["bot_id"] });
    const { id } = slack.workspace.bot;
    expect(await single.open(signal)).toMatchObject({ botUserId: id, botId: id });
  });

  test("is not asked for before Slack allows it", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { retryAfterS: 2 });
    await single.open(signal);
    const [refused, taken] = slack.requests;
    expect((taken?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(1_990);
  });

  test("is not waited for once the signal has aborted", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { status: 503 }, 10);
    const ending = new AbortController();
    const opening = single.open(ending.signal);
    await slack.until(() => slack.requests.length > 0, "the first try");
    ending.abort(new Error("enough"));
    await expect(opening).rejects.toThrow();
  });

  test.each(TRANSPORTS)("is none for a wrong token, which the start says in plain words over %s", async (transport) => {
    const slack = await startSlack();
    const starting = startAdapter(slack, { transport, installed: { botToken: "xoxb-wrong" } });
    await expect(starting).rejects.toThrow(/bot token \(invalid_auth\).*SLACK_BOT_TOKEN/);
  });

  test("that removes the bot ends it in plain words", async () => {
    const slack = await startSlack();
    const { reasons } = await startAdapter(slack);
    slack.revoke("account_inactive", { isTold: true });
    await slack.acknowledged();
    expect(reasons).toEqual([expect.stringMatching(/removed from its Slack workspace.*SLACK_BOT_TOKEN/)]);
  });
});
