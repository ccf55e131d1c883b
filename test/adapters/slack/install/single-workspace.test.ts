import { describe, expect, test } from "vitest";
import { createSlackApi } from "../../../../adapters/slack/api/client.ts";
import { createSingleWorkspace } from "../../../../adapters/slack/install/single-workspace.ts";
import { silent } from "../../../../lab/support/log.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { startSlack } from "../../../support/slack.ts";
import { draft, signal, startAdapter, TRANSPORTS } from "../stage.ts";

async function start(botToken?: string) {
  const slack = await startSlack();
  const token = botToken ?? slack.botToken;
  const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf: async () => token, now: slack.now });
  return { slack, single: createSingleWorkspace(token, api, silent) };
}

describe("the workspace of a bot token", () => {
  test("the workspace comes from Slack's response about the bot token, and no other is known", async () => {
    const { slack, single } = await start();
    expect(single.sole?.()).toBeUndefined();
    const workspace = await single.open(signal);
    const { id, bot, botToken } = slack.workspace;
    expect(workspace).toEqual({ teamId: id, botUserId: bot.id, botId: bot.botId, token: botToken });
    expect(await single.find(id, signal)).toEqual(workspace);
    expect(await single.find("T9", signal)).toBeUndefined();
    expect(single.sole?.()).toEqual(workspace);
  });

  test("the workspace of a bot token is found even by writes before the adapter listens", async () => {
    const { slack, single } = await start();
    const { id, bot } = slack.workspace;
    expect(await single.find(id, signal)).toMatchObject({ botId: bot.botId });
    await single.find(id, signal);
    expect(slack.requests.map(({ method }) => method)).toEqual(["auth.test"]);
  });

  test("the lookup of the token's workspace is retried while Slack is unreachable", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { status: 503 });
    expect(await single.open(signal)).toMatchObject({ teamId: slack.workspace.id });
  });

  test("the token's workspace is known even if Slack returns only the bot's user", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { isDone: true, omits: ["bot_id"] });
    const { id } = slack.workspace.bot;
    expect(await single.open(signal)).toMatchObject({ botUserId: id, botId: id });
  });

  test("the lookup of the token's workspace is not retried before Slack allows it", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { retryAfterS: 1 });
    await single.open(signal);
    const [refused, taken] = slack.requests;
    expect((taken?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("waiting for the token's workspace ends when the signal aborts", async () => {
    const { slack, single } = await start();
    slack.failNext("auth.test", { status: 503 }, 10);
    const ending = new AbortController();
    const opening = single.open(ending.signal);
    await slack.until(() => slack.requests.length > 0, "the first try");
    ending.abort(new Error("enough"));
    await expect(opening).rejects.toThrow();
  });

  test.each(TRANSPORTS)("a wrong token fails the start with a plain sentence over %s", async (transport) => {
    const slack = await startSlack();
    const starting = startAdapter(slack, { transport, installed: { botToken: "xoxb-wrong" } });
    await expect(starting).rejects.toThrow(/bot token \(invalid_auth\).*SLACK_BOT_TOKEN/);
  });

  test("a token of a whole organisation serves all its workspaces", async () => {
    const { slack } = await start();
    const starship = slack.addOrganisation("Starship");
    const bridge = slack.addWorkspace("Bridge", undefined, starship);
    const { message, adapter, reasons } = await startAdapter(slack, { installed: { botToken: starship.botToken } });
    const ada = slack.user({ name: "Ada", workspace: bridge });
    ada.dm("hello");
    const { reply, author } = await message(0);
    expect(author.id).toBe(`${starship.id}/${ada.id}`);
    await adapter.sink(reply, NO_RIGHT).post(draft("An answer."), "nonce", signal);
    expect(slack.texts(ada.direct())).toEqual(["An answer."]);
    slack.uninstallFrom(starship);
    await slack.acknowledged();
    expect(reasons).toEqual([expect.stringMatching(/removed from its Slack workspace/)]);
  });

  test("removing the bot from its workspace stops it with a plain sentence", async () => {
    const slack = await startSlack();
    const { reasons } = await startAdapter(slack);
    slack.revoke("account_inactive", { isTold: true });
    await slack.acknowledged();
    expect(reasons).toEqual([expect.stringMatching(/removed from its Slack workspace.*SLACK_BOT_TOKEN/)]);
  });
});
