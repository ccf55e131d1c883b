import { describe, expect, test } from "vitest";
import { createSlackApi, type SlackApi } from "../../../../adapters/slack/api/client.ts";
import { SlackApiError } from "../../../../adapters/slack/api/error.ts";
import { FencedError, withFence } from "../../../../src/concurrency/fence.ts";
import type { SharedWaits } from "../../../../src/port/pace.ts";
import type { Fault } from "../../../simulators/slack/faults.ts";
import { type Slack, startSlack } from "../../../simulators/slack/slack.ts";
import { connectWaits } from "../../../support/waits.ts";

const signal = new AbortController().signal;

async function start(
  waits?: SharedWaits,
  given?: Slack,
): Promise<{ slack: Slack; api: SlackApi; team: string; test(fault?: Fault): Promise<unknown> }> {
  const slack = given ?? (await startSlack());
  const api = createSlackApi({
    apiUrl: slack.apiUrl,
    tokenOf: async () => slack.botToken,
    now: slack.now,
    waits,
  });
  const team = slack.workspace.id;
  return {
    slack,
    api,
    team,
    async test(fault) {
      if (fault !== undefined) slack.failNext("auth.test", fault);
      return api.call(team, "auth.test", {}, signal).catch((error: unknown) => error);
    },
  };
}

describe("the Web API", () => {
  test("is called with the token of the workspace, and with structured values", async () => {
    const slack = await startSlack();
    const other = slack.addWorkspace("Other");
    const tokens = new Map([slack.workspace, other].map(({ id, botToken }) => [id, botToken]));
    const api = createSlackApi({
      apiUrl: slack.apiUrl,
      tokenOf: async (team) => tokens.get(team),
      now: slack.now,
    });
    const teams = [slack.workspace.id, other.id];
    const answers = await Promise.all(
      [...teams, ...teams].map((team) => api.call(team, "auth.test", { list: [1] }, signal)),
    );
    expect(answers.map(({ team_id }) => team_id)).toEqual([...teams, ...teams]);
    expect(slack.requests.map(({ args }) => args["list"])).toContain("[1]");
  });

  test("is not called for work that another process has taken over", async () => {
    const { slack, api, team } = await start();
    const fence = { key: "lane", value: "first", check: () => Promise.reject(new FencedError("taken over")) };
    const call = withFence(fence, () => api.call(team, "auth.test", {}, signal));
    await expect(call).rejects.toThrow(FencedError);
    expect(slack.requests).toEqual([]);
  });

  test("takes a text with half a character", async () => {
    const { slack, api, team } = await start();
    expect(await api.call(team, "auth.test", { text: "half \ud83d" }, signal)).toMatchObject({ ok: true });
    expect(slack.requests.map(({ args }) => args["text"])).toEqual(["half \ufffd"]);
  });

  test("is understood where a proxy packs its answers unasked", async () => {
    const { test: call } = await start(undefined, await startSlack({ dialect: "spare" }));
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
  ])("names %s", async (_, fault, expected) => {
    const { test } = await start();
    const error = await test(fault);
    expect(error).toBeInstanceOf(SlackApiError);
    expect(error).toMatchObject(expected);
  });

  test("is called once, also after a failure", async () => {
    const { slack, test } = await start();
    for (const fault of [{ status: 503 }, { cutsConnection: true }, { retryAfterS: 1 }]) await test(fault);
    expect(slack.requests).toHaveLength(3);
  });

  test("is not kept waiting by a limit that another method met", async () => {
    const { slack, api, team, test } = await start();
    await test({ retryAfterS: 600 });
    expect(await api.call(team, "users.info", { user: slack.workspace.bot.id }, signal)).toMatchObject({ ok: true });
  });

  test("is not called again by anybody before the end of the wait that Slack asked for", async () => {
    const { slack, api, team, test } = await start();
    await test({ retryAfterS: 30 });
    slack.advance(10_000);
    const refusal = (await test()) as SlackApiError;
    expect(refusal.code).toBe("ratelimited");
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(20_000);
    expect(slack.requests).toHaveLength(1);
    slack.advance(20_000);
    expect(await api.call(team, "auth.test", {}, signal)).toMatchObject({ ok: true });
  });

  test("is not called by one process before the end of the wait that another one was told", async () => {
    const [own, others] = connectWaits(2);
    const { slack, test } = await start(own);
    const other = await start(others, slack);
    await test({ retryAfterS: 30 });
    expect(await other.test()).toMatchObject({ code: "ratelimited", status: 0 });
    expect(slack.requests).toHaveLength(1);
    slack.advance(30_000);
    expect(await other.test()).toMatchObject({ ok: true });
  });

  test("is called with each call's own signal", async () => {
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

  test("is not called any more with a token that was revoked, until there is another", async () => {
    const slack = await startSlack();
    let token = slack.botToken;
    const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf: async () => token, now: slack.now });
    const call = () => api.call(slack.workspace.id, "auth.test", {}, signal);
    slack.revoke();
    for (const _ of [1, 2]) await expect(call()).rejects.toMatchObject({ code: "token_revoked" });
    expect(slack.requests).toHaveLength(1);
    token = slack.addWorkspace("Installed again").botToken;
    expect(await call()).toMatchObject({ ok: true });
  });

  test("is not called where the app is not installed", async () => {
    const slack = await startSlack();
    const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf: async () => undefined, now: slack.now });
    await expect(api.call("T1", "auth.test", {}, signal)).rejects.toMatchObject({ code: "app_not_installed" });
    expect(slack.requests).toEqual([]);
  });

  test("names nothing in its errors that people write", async () => {
    const slack = await startSlack();
    const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf: async () => slack.botToken, now: slack.now });
    const call = () => api.call(slack.workspace.id, "chat.postMessage", { channel: "C1", text: "SECRET" }, signal);
    const errors = [await call().catch(String)];
    slack.failNext("chat.postMessage", { cutsConnection: true });
    errors.push(await call().catch(String));
    expect(JSON.stringify(errors)).not.toMatch(/SECRET|xoxb/);
  });
});
