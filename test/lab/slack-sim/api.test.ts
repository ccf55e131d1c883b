import { webApi } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import { callApi, createWebClient, errorOf, postMessage } from "../../../lab/slack-sim/web-api.ts";
import { startGeneral } from "../../support/slack.ts";

async function openGeneral() {
  const { slack, ada, general } = await startGeneral();
  const client = createWebClient(slack);
  const post = (text: string) => postMessage(client, { channel: general.id, text });
  return { slack, ada, general, client, post };
}

describe("the simulated Web API", () => {
  test("the simulated API reads forms, JSON, multipart and queries alike", async () => {
    const { slack, general } = await openGeneral();
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

  test("the simulated API names unknown methods and unreadable bodies", async () => {
    const { slack, general } = await openGeneral();
    const { body } = await callApi(slack, "chat.sing");
    expect(body).toEqual({ ok: false, error: "unknown_method", req_method: "chat.sing" });
    expect((await callApi(slack, "chat.postMessage", { text: "x" })).body).toMatchObject({
      error: "invalid_arguments",
      response_metadata: { messages: ["[ERROR] missing required field: channel"] },
    });
    expect(await errorOf(slack, "chat.postMessage", { channel: general.id, blocks: "[" })).toBe("invalid_arguments");
  });

  test("the simulated API logs calls without tokens", async () => {
    const { slack, general, post } = await openGeneral();
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

  test("the simulated API needs a known token with the scope of the method", async () => {
    const { slack, general } = await openGeneral();
    expect(await errorOf(slack, "auth.test", {}, "")).toBe("not_authed");
    expect(await errorOf(slack, "auth.test", {}, "xoxb-stolen")).toBe("invalid_auth");
    slack.workspace.scopes.delete("chat:write");
    const { body } = await callApi(slack, "chat.postMessage", { channel: general.id, text: "x" });
    expect(body).toMatchObject({ error: "missing_scope", needed: "chat:write" });
  });

  test.each(["token_revoked", "account_inactive", "invalid_auth"] as const)(
    "the simulated API refuses a revoked token with %s, and records a second call with this token as a violation",
    async (reason) => {
      const { slack, post } = await openGeneral();
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

  test("revoking a token sends its events to the app on request", async () => {
    const { slack } = await openGeneral();
    slack.revoke("account_inactive", { isTold: true });
    expect(slack.deliveries.map(({ payload }) => payload["event"])).toMatchObject([
      { type: "tokens_revoked", tokens: { bot: [slack.workspace.bot.id] } },
      { type: "app_uninstalled" },
    ]);
  });

  test("`failNext` makes the next calls of a method fail, and later calls succeed", async () => {
    const { slack, post } = await openGeneral();
    slack.failNext("chat.postMessage", { retryAfterS: 7 });
    slack.failNext("chat.postMessage", { status: 503, html: "<h1>busy</h1>" });
    slack.failNext("*", { error: "internal_error" });
    const errors: unknown[] = [];
    for (let count = 0; count < 4; count++) await post("a").catch((error: unknown) => errors.push(error));
    expect(errors[0]).toBeInstanceOf(webApi.WebAPIRateLimitedError);
    expect(errors).toMatchObject([{ retryAfter: 7 }, { statusCode: 503 }, { data: { error: "internal_error" } }]);
    expect(slack.violations).toEqual([]);
  });

  test("a fault with `isDone` executes a call and loses its response", async () => {
    const { slack, general, post } = await openGeneral();
    slack.failNext("chat.postMessage", { isDone: true, cutsConnection: true });
    await expect(post("once")).rejects.toBeInstanceOf(webApi.WebAPIRequestError);
    expect(slack.texts(general)).toEqual(["once"]);
    expect(slack.requests.at(-1)?.status).toBe(0);
  });

  test("a fault with `isDone` can omit fields of the response, or delay the response", async () => {
    const { slack, general } = await openGeneral();
    slack.failNext("chat.postMessage", { isDone: true, omits: ["ts"], answersLateMs: 20 });
    const answering = callApi(slack, "chat.postMessage", { channel: general.id, text: "said" });
    await slack.until(() => slack.texts(general).length > 0, "the message");
    expect(slack.requests.at(-1)?.status).toBe(0);
    const { body } = await answering;
    expect(body).toMatchObject({ ok: true, channel: general.id });
    expect(body).not.toHaveProperty("ts");
  });

  test("`slow` delays the calls of a method", async () => {
    const { slack, general, post } = await openGeneral();
    slack.slow("chat.postMessage", 30);
    const startedMs = performance.now();
    await post("slowly");
    // A timer can fire early, but at most by a millisecond.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29);
    slack.slow("chat.postMessage", 0);
    expect(slack.texts(general)).toEqual(["slowly"]);
  });
});
