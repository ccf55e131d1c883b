import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, expect, test } from "vitest";
import { createReplays } from "../../../../adapters/slack/hear/requests.ts";
import { signatureHeaders } from "../../../../lab/slack-sim/http-delivery.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { draft, type Stage, signal, startStage } from "../stage.ts";

type Headers = Record<string, string | string[]>;

/** Resolves to the status of a request that is sent unchanged, even with duplicate headers. */
function send(url: string, path: string, body: string, headers: Headers, method = "POST"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request(url + path, { method, headers, path }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

const JSON_TYPE = { "content-type": "application/json" };
const nowS = () => Math.floor(Date.now() / 1_000);

function toEvent({ slack, general, ada }: Stage, text: string): string {
  const { id: team_id, bot } = slack.workspace;
  const event = {
    type: "message",
    channel: general.id,
    channel_type: "channel",
    user: ada.id,
    ts: `${nowS()}.000100`,
    text: `<@${bot.id}> ${text}`,
  };
  return JSON.stringify({ type: "event_callback", team_id, event, event_id: "Ev1", authorizations: [{ team_id }] });
}

async function startHttp() {
  const stage = await startStage({ transport: "HTTP" });
  const { signingSecret } = stage.slack;
  const sign = (body: string, atS?: number) => ({ ...JSON_TYPE, ...signatureHeaders(signingSecret, body, atS) });
  const post = (body: string, headers: Headers, path = "/slack/events") => send(stage.url, path, body, headers);
  return { ...stage, sign, post, body: toEvent(stage, "hello") };
}

describe("requests from Slack", () => {
  test("the server accepts signed requests, even in chunks from a proxy", async () => {
    const { post, sign, body, events } = await startHttp();
    expect(await post(body, { ...sign(body), "transfer-encoding": "chunked" })).toBe(200);
    expect(events).toHaveLength(1);
  });

  test("the server refuses forged, old and future requests, which have no effect", async () => {
    const { post, sign, body, events } = await startHttp();
    const forged = { ...sign(body), "x-slack-signature": `v0=${"0".repeat(64)}` };
    expect(await post(body, forged)).toBe(401);
    expect(await post(body.replace("hello", "other"), sign(body))).toBe(401);
    for (const skewS of [-310, 310]) expect(await post(body, sign(body, nowS() + skewS))).toBe(401);
    expect(await post(body, { ...sign(body), "x-slack-request-timestamp": "soon" })).toBe(401);
    expect(events).toEqual([]);
    for (const skewS of [-290, 290]) expect(await post(body, sign(body, nowS() + skewS))).toBe(200);
  });

  test("the server refuses requests with missing or duplicate headers", async () => {
    const { post, sign, body, events } = await startHttp();
    for (const name of ["x-slack-signature", "x-slack-request-timestamp"]) {
      const headers: Headers = sign(body);
      const value = String(headers[name]);
      expect(await post(body, { ...headers, [name]: [value, value] })).toBe(401);
      delete headers[name];
      expect(await post(body, headers)).toBe(401);
    }
    expect(await post(body, JSON_TYPE)).toBe(401);
    expect(events).toEqual([]);
  });

  test("the server refuses a repeated request, unless Slack marks it as a retry", async () => {
    const { post, sign, body, events } = await startHttp();
    const headers = sign(body);
    expect(await post(body, headers)).toBe(200);
    expect(await post(body, headers)).toBe(401);
    expect(await post(body, { ...headers, "x-slack-retry-num": "1" })).toBe(200);
    expect(events).toHaveLength(1);
  });

  test("the server refuses unreadable requests and keeps running", async () => {
    const { post, sign, body, url, events } = await startHttp();
    expect(await post("{", sign("{"))).toBe(400);
    for (const odd of ["null", "1", '"text"']) expect(await post(odd, sign(odd))).toBe(400);
    const form = "payload=null";
    const type = { "content-type": "application/x-www-form-urlencoded" };
    expect(await post(form, { ...sign(form), ...type })).toBe(400);
    const large = "x".repeat(4 * 1024 * 1024 + 1);
    expect(await post(large, sign(large))).toBe(413);
    expect(await send(url, "//", "", {}, "GET")).toBe(404);
    expect(await send(url, "/slack/events", "", {}, "GET")).toBe(404);
    expect(await post(body, sign(body), "//slack/events")).toBe(404);
    expect(await post(body, sign(body))).toBe(200);
    expect(events).toHaveLength(1);
  });

  test("the server refuses an unsigned body after one kilobyte, and a malformed signature before it reads any body", async () => {
    const { url, sign, body } = await startHttp();
    /** Resolves to the status that arrives while the body is still being sent. */
    const begin = async (headers: Headers, bytes: number) => {
      const sending = request(`${url}/slack/events`, { method: "POST", headers });
      sending.on("error", () => {});
      sending.write("x".repeat(bytes));
      const [response] = (await once(sending, "response")) as [IncomingMessage];
      sending.destroy();
      return response.statusCode;
    };
    expect(await begin(JSON_TYPE, 1025)).toBe(413);
    expect(await begin({ ...sign(body), "x-slack-signature": "v0=abc" }, 1)).toBe(401);
    expect(await begin(sign(body, nowS() - 6 * 60), 1)).toBe(401);
    expect(await begin({ ...sign(body), "x-slack-request-timestamp": "soon" }, 1)).toBe(401);
  });

  test("the server reads a form even if its media type names a charset", async () => {
    const { post, sign, slack, ada, general } = await startHttp();
    const form = new URLSearchParams({
      command: "/help",
      text: "",
      team_id: slack.workspace.id,
      channel_id: general.id,
      user_id: ada.id,
      user_name: "ada",
      trigger_id: "1.2.3",
      response_url: "https://hooks.slack.com/commands/1",
    }).toString();
    const type = { "content-type": "application/x-www-form-urlencoded;charset=UTF-8" };
    expect(await post(form, { ...sign(form), ...type })).toBe(200);
  });

  test("the server answers Slack's own test requests", async () => {
    const { url, sign, post } = await startHttp();
    const asked = JSON.stringify({ type: "url_verification", challenge: "abc", token: "t" });
    const answer = await fetch(`${url}/slack/events`, { method: "POST", headers: sign(asked), body: asked });
    expect(await answer.json()).toEqual({ challenge: "abc" });
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect(await post("ssl_check=1&token=t", form)).toBe(200);
  });

  test("the server acknowledges requests without an event", async () => {
    const { slack } = await startHttp();
    expect(await slack.reachEventLimit().outcome).toMatchObject({ isAcknowledged: true });
  });

  test("the server refuses requests before the adapter listens, and after a pause", async () => {
    const stage = await startStage({ transport: "HTTP", listens: false });
    const [body, again] = [toEvent(stage, "hello"), toEvent(stage, "again")];
    const sign = (text: string) => ({ ...JSON_TYPE, ...signatureHeaders(stage.slack.signingSecret, text) });
    expect(stage.adapter.isConnected()).toBe(false);
    expect(await send(stage.url, "/slack/events", body, sign(body))).toBe(503);
    await stage.adapter.listen(async () => {});
    expect(stage.adapter.isConnected()).toBe(true);
    expect(await send(stage.url, "/slack/events", body, sign(body))).toBe(200);
    await stage.adapter.pause();
    expect(stage.adapter.isConnected()).toBe(false);
    expect(await send(stage.url, "/slack/events", again, sign(again))).toBe(503);
  });

  test("the server acknowledges events about the bot's own messages even after a pause, because these events can be lost", async () => {
    const { slack, adapter, general, ada, message } = await startStage({ transport: "HTTP" });
    ada.mention(general, "hello");
    const { reply } = await message(0);
    await slack.acknowledged();
    await adapter.pause();
    await adapter.sink(reply, NO_RIGHT).post(draft("good night"), "n", signal);
    await slack.acknowledged();
    expect(slack.deliveries.at(-1)?.attempts).toMatchObject([{ isAcknowledged: true }]);
  });
});

describe("the replay guard of requests", () => {
  test("the replay guard remembers a signature while its timestamp could be valid", () => {
    let nowMs = 0;
    const replays = createReplays(() => nowMs);
    replays.add("a");
    nowMs = 9 * 60_000;
    replays.add("b");
    expect([replays.has("a"), replays.has("b"), replays.has("c")]).toEqual([true, true, false]);
    nowMs = 11 * 60_000;
    replays.add("c");
    expect([replays.has("a"), replays.has("b"), replays.has("c")]).toEqual([false, true, true]);
  });

  test("the replay guard remembers a limited number of signatures", () => {
    const replays = createReplays(() => 0);
    for (let count = 0; count <= 10_000; count++) replays.add(`${count}`);
    expect([replays.has("0"), replays.has("1"), replays.has("10000")]).toEqual([false, true, true]);
  });
});
