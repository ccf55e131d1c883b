import { webApi } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import { startSlack } from "./slack.ts";
import { callApi, createWebClient, errorOf, postMessage } from "./web-api.ts";

async function startGeneral() {
  const slack = await startSlack();
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
  const client = createWebClient(slack);
  const post = (text: string) => postMessage(client, { channel: general.id, text });
  return { slack, ada, general, client, post };
}

describe("the Web API", () => {
  test("reads forms, JSON, multipart and queries alike", async () => {
    const { slack, general } = await startGeneral();
    const url = `${slack.apiUrl}chat.postEphemeral`;
    const [member] = general.members;
    const args = { channel: general.id, user: member ?? "", text: "hi", blocks: '[{"type":"divider"}]' };
    const headers = { authorization: `Bearer ${slack.botToken}` };
    const form = new FormData();
    for (const [name, value] of Object.entries(args)) form.set(name, value);
    const json = { ...args, blocks: [{ type: "divider" }] };
    await fetch(url, { method: "POST", headers, body: new URLSearchParams(args) });
    await fetch(url, { method: "POST", body: new URLSearchParams({ ...args, token: slack.botToken }) });
    await fetch(url, { method: "POST", headers, body: form });
    await callApi(slack, "chat.postEphemeral", json);
    await fetch(`${url}?${new URLSearchParams(args).toString()}`, { headers });
    expect(slack.ephemerals(general).map(({ content }) => content.blocks)).toEqual(
      Array.from({ length: 5 }, () => [{ type: "divider" }]),
    );
  });

  test("names what it does not know or cannot read", async () => {
    const { slack, general } = await startGeneral();
    const { body } = await callApi(slack, "chat.sing");
    expect(body).toEqual({ ok: false, error: "unknown_method", req_method: "chat.sing" });
    expect((await callApi(slack, "chat.postMessage", { text: "x" })).body).toMatchObject({
      error: "invalid_arguments",
      response_metadata: { messages: ["[ERROR] missing required field: channel"] },
    });
    expect(await errorOf(slack, "chat.postMessage", { channel: general.id, blocks: "[" })).toBe("invalid_arguments");
  });

  test("keeps a log of calls without tokens", async () => {
    const { slack, general, post } = await startGeneral();
    await post("hi");
    await errorOf(slack, "chat.postMessage", { channel: general.id, token: slack.botToken });
    expect(slack.requests).toMatchObject([
      {
        method: "chat.postMessage",
        args: { text: "hi" },
        status: 200,
        error: undefined,
        workspaceId: slack.workspace.id,
      },
      { method: "chat.postMessage", status: 200, error: "no_text" },
    ]);
    expect(JSON.stringify(slack.requests)).not.toContain(slack.botToken);
  });

  test("wants a token it knows, with the scope of the method", async () => {
    const { slack, general } = await startGeneral();
    expect(await errorOf(slack, "auth.test", {}, "")).toBe("not_authed");
    expect(await errorOf(slack, "auth.test", {}, "xoxb-stolen")).toBe("invalid_auth");
    slack.workspace.scopes.delete("chat:write");
    const { body } = await callApi(slack, "chat.postMessage", { channel: general.id, text: "x" });
    expect(body).toMatchObject({ error: "missing_scope", needed: "chat:write" });
  });

  test.each(["token_revoked", "account_inactive", "invalid_auth"] as const)(
    "refuses a revoked token with %s, and a second call with it is a violation",
    async (reason) => {
      const { slack, post } = await startGeneral();
      slack.revoke(reason);
      await expect(post("a")).rejects.toMatchObject({ data: { error: reason } });
      slack.assertClean();
      await expect(post("b")).rejects.toMatchObject({ data: { error: reason } });
      expect(slack.violations.map(({ sentence }) => sentence)).toEqual([
        "chat.postMessage was called with a token that was refused before.",
      ]);
      slack.allow("revoked-token");
    },
  );

  test("tells the app that its token was revoked when asked to", async () => {
    const { slack } = await startGeneral();
    slack.revoke("account_inactive", { isTold: true });
    expect(slack.deliveries.map(({ payload }) => payload["event"])).toMatchObject([
      { type: "tokens_revoked", tokens: { bot: [slack.workspace.bot.id] } },
      { type: "app_uninstalled" },
    ]);
  });

  test("fails the next calls of a method as asked, then works again", async () => {
    const { slack, post } = await startGeneral();
    slack.failNext("chat.postMessage", { retryAfterS: 7 });
    slack.failNext("chat.postMessage", { status: 503, html: "<h1>busy</h1>" });
    slack.failNext("*", { error: "internal_error" });
    const errors: unknown[] = [];
    for (let count = 0; count < 4; count++) await post("a").catch((error: unknown) => errors.push(error));
    expect(errors[0]).toBeInstanceOf(webApi.WebAPIRateLimitedError);
    expect(errors).toMatchObject([{ retryAfter: 7 }, { statusCode: 503 }, { data: { error: "internal_error" } }]);
    expect(slack.violations).toEqual([]);
  });

  test("carries a call out and loses its answer when asked to", async () => {
    const { slack, general, post } = await startGeneral();
    slack.failNext("chat.postMessage", { isDone: true, cutsConnection: true });
    await expect(post("once")).rejects.toBeInstanceOf(webApi.WebAPIRequestError);
    expect(slack.texts(general)).toEqual(["once"]);
    expect(slack.requests.at(-1)?.status).toBe(0);
  });

  test("carries a call out and says less than it knows, or says it late, when asked to", async () => {
    const { slack, general } = await startGeneral();
    slack.failNext("chat.postMessage", { isDone: true, omits: ["ts"], answersLateMs: 20 });
    const answering = callApi(slack, "chat.postMessage", { channel: general.id, text: "said" });
    await slack.until(() => slack.texts(general).length > 0, "the message");
    expect(slack.requests.at(-1)?.status).toBe(0);
    const { body } = await answering;
    expect(body).toMatchObject({ ok: true, channel: general.id });
    expect(body).not.toHaveProperty("ts");
  });

  test("takes its time when asked to", async () => {
    const { slack, general, post } = await startGeneral();
    slack.slow("chat.postMessage", 30);
    const startedMs = performance.now();
    await post("slowly");
    // Timers may ring a little early, never more than a millisecond.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29);
    slack.slow("chat.postMessage", 0);
    expect(slack.texts(general)).toEqual(["slowly"]);
  });
});
