import { describe, expect, test } from "vitest";
import { createSlackApi } from "../../../../adapters/slack/api/client.ts";
import { ApiError } from "../../../../adapters/slack/api/error.ts";
import type { Fault } from "../../../../lab/slack-sim/faults.ts";
import type { SimulatorOptions } from "../../../../lab/slack-sim/simulator.ts";
import { FencedError, NO_RIGHT, withFence, withRight } from "../../../../src/port/right.ts";
import { startSlack } from "../../../support/slack.ts";

const signal = new AbortController().signal;
type TokenOf = Parameters<typeof createSlackApi>[0]["tokenOf"];

async function start({ tokenOf, ...simulator }: SimulatorOptions & { tokenOf?: TokenOf } = {}) {
  const slack = await startSlack(simulator);
  const { apiUrl, now } = slack;
  const api = createSlackApi({ apiUrl, tokenOf: tokenOf ?? (async () => slack.botToken), now });
  const team = slack.workspace.id;
  return {
    slack,
    api,
    team,
    async test(fault?: Fault): Promise<unknown> {
      if (fault !== undefined) slack.failNext("auth.test", fault);
      return api.call(team, "auth.test", {}, signal).catch((error: unknown) => error);
    },
  };
}

describe("the Slack client", () => {
  test("the Slack client sends the workspace's token and structured values", async () => {
    const tokens = new Map<string, string>();
    const { slack, api } = await start({ tokenOf: async (team) => tokens.get(team) });
    const other = slack.addWorkspace("Other");
    for (const { id, botToken } of [slack.workspace, other]) tokens.set(id, botToken);
    const teams = [slack.workspace.id, other.id];
    const answers = await Promise.all(
      [...teams, ...teams].map((team) => api.call(team, "auth.test", { list: [1] }, signal)),
    );
    expect(answers.map(({ team_id }) => team_id)).toEqual([...teams, ...teams]);
    expect(slack.requests.map(({ args }) => args["list"])).toContain("[1]");
  });

  test("the Slack client makes no call for work that another process took over", async () => {
    const { slack, api, team } = await start();
    const fence = { key: "lane", value: "first", check: () => Promise.reject(new FencedError("taken over")) };
    const call = withRight(api, withFence(NO_RIGHT, fence)).call(team, "auth.test", {}, signal);
    await expect(call).rejects.toThrow(FencedError);
    expect(slack.requests).toEqual([]);
  });

  test("the Slack client sends a text that contains half a surrogate pair", async () => {
    const { slack, api, team } = await start();
    expect(await api.call(team, "auth.test", { text: "half \ud83d" }, signal)).toMatchObject({ ok: true });
    expect(slack.requests.map(({ args }) => args["text"])).toEqual(["half \ufffd"]);
  });

  test("the Slack client reads a response that a proxy compressed", async () => {
    const { test: call } = await start({ dialect: "spare" });
    expect(await call()).toMatchObject({ ok: true });
  });

  test.each<[string, Fault, object]>([
    ["a refusal", { error: "not_in_channel" }, { code: "not_in_channel", retryAfterMs: undefined }],
    ["a limit as a status", { retryAfterS: 3 }, { retryAfterMs: 3_000 }],
    ["a limit with a part of a second", { retryAfterS: 1.5 }, { retryAfterMs: 1_500 }],
    ["a limit as a refusal", { error: "ratelimited" }, { retryAfterMs: 10_000 }],
    ["a limit without a time", { status: 429 }, { retryAfterMs: 10_000 }],
    ["a failing server", { status: 503 }, { code: "", status: 503 }],
    ["an unknown place", { status: 404 }, { code: "", status: 404 }],
    ["a page", { html: "<html>" }, { code: "", status: 200 }],
    ["a cut connection", { cutsConnection: true }, { code: "", status: 0 }],
  ])("the Slack client reports %s", async (_, fault, expected) => {
    const { test } = await start();
    const error = await test(fault);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject(expected);
  });

  test("the Slack client makes each call once, even after a failure", async () => {
    const { slack, test } = await start();
    for (const fault of [{ status: 503 }, { cutsConnection: true }, { retryAfterS: 1 }]) await test(fault);
    expect(slack.requests).toHaveLength(3);
  });

  test("a rate limit of one method does not delay another", async () => {
    const { slack, api, team, test } = await start();
    await test({ retryAfterS: 600 });
    expect(await api.call(team, "users.info", { user: slack.workspace.bot.id }, signal)).toMatchObject({ ok: true });
  });

  test("the Slack client makes no call of a method before Slack's wait is over", async () => {
    const { slack, api, team, test } = await start();
    await test({ retryAfterS: 30 });
    slack.advance(10_000);
    const refusal = (await test()) as ApiError;
    expect(refusal.code).toBe("ratelimited");
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(20_000);
    expect(slack.requests).toHaveLength(1);
    slack.advance(20_000);
    expect(await api.call(team, "auth.test", {}, signal)).toMatchObject({ ok: true });
  });

  test("the Slack client uses a separate signal for each call", async () => {
    const { slack, api, team } = await start();
    const controller = new AbortController();
    slack.failNext("auth.test", { delayMs: 60_000 });
    const hanging = api.call(team, "auth.test", {}, controller.signal);
    await slack.until(() => slack.requests.length === 1, "the call that hangs");
    expect(await api.call(team, "auth.test", {}, signal)).toMatchObject({ ok: true });
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(hanging).rejects.toBe(reason);
    await api.settled();
  });

  test("the Slack client stops using a revoked token until there is another", async () => {
    let token = "";
    const { slack, test: call } = await start({ tokenOf: async () => token });
    token = slack.botToken;
    slack.revoke();
    for (const _ of [1, 2]) expect(await call()).toMatchObject({ code: "token_revoked" });
    expect(slack.requests).toHaveLength(1);
    token = slack.addWorkspace("Installed again").botToken;
    expect(await call()).toMatchObject({ ok: true });
  });

  test("the Slack client makes no call if the app is not installed", async () => {
    const { slack, test: call } = await start({ tokenOf: async () => undefined });
    expect(await call()).toMatchObject({ code: "app_not_installed" });
    expect(slack.requests).toEqual([]);
  });

  test("the Slack client's errors contain no text by people", async () => {
    const { slack, api, team } = await start();
    const call = () => api.call(team, "chat.postMessage", { channel: "C1", text: "SECRET" }, signal);
    const errors = [await call().catch(String)];
    slack.failNext("chat.postMessage", { cutsConnection: true });
    errors.push(await call().catch(String));
    expect(JSON.stringify(errors)).not.toMatch(/SECRET|xoxb/);
  });
});
