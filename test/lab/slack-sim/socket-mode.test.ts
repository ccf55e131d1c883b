import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import type { Limits } from "../../../lab/slack-sim/limits.ts";
import { callApi, createWebClient, errorOf } from "../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { type Slack, startSlack } from "../../support/slack.ts";

/** A connection that acknowledges a payload if `acknowledges` returns true, and records everything that it receives. */
async function connect(slack: Slack, acknowledges: (envelope: Json) => boolean = () => true) {
  const { url = "" } = await createWebClient(slack, slack.appToken).apps.connections.open();
  const socket = new WebSocket(url);
  onTestFinished(() => socket.terminate());
  const heard: Json[] = [];
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Json;
    heard.push(message);
    const id = message["envelope_id"];
    if (id !== undefined && acknowledges(message)) socket.send(JSON.stringify({ envelope_id: id, payload: {} }));
  });
  await once(socket, "message");
  return { socket, url, heard, envelopes: () => heard.filter((message) => "envelope_id" in message) };
}

async function startQuestion(limits: Partial<Limits> = {}) {
  const slack = await startSlack({ limits });
  const ada = slack.user({ name: "Ada" });
  const ask = (text = "hi") => ada.dm(text);
  return { slack, ada, ask };
}

describe("the simulated Socket Mode", () => {
  test("a new connection gets hello with the number of connections", async () => {
    const { slack } = await startQuestion();
    const first = await connect(slack);
    const second = await connect(slack);
    expect(first.heard[0]).toMatchObject({
      type: "hello",
      num_connections: 1,
      connection_info: { app_id: "A000000001" },
    });
    expect(second.heard[0]).toMatchObject({ type: "hello", num_connections: 2 });
  });

  test("a connection URL works once, and needs the app-level token", async () => {
    const { slack } = await startQuestion();
    const { url } = await connect(slack);
    const again = new WebSocket(url);
    const [error] = (await once(again, "error")) as [Error];
    expect(error.message).toContain("401");
    expect(await errorOf(slack, "apps.connections.open")).toBe("not_allowed_token_type");
    expect(await errorOf(slack, "auth.test", {}, slack.appToken)).toBe("not_allowed_token_type");
  });

  test("the simulator sends pings and answers them", async () => {
    const { slack } = await startQuestion({ pingMs: 5 });
    const { socket } = await connect(slack);
    await once(socket, "ping");
    socket.ping("here");
    const [data] = (await once(socket, "pong")) as [Buffer];
    expect(String(data)).toBe("here");
  });

  test("each payload goes to one connection, in turn", async () => {
    const { slack, ask } = await startQuestion();
    const connections = [await connect(slack), await connect(slack)];
    for (let count = 0; count < 6; count++) ask();
    await slack.acknowledged();
    expect(connections.map(({ envelopes }) => envelopes().length)).toEqual([3, 3]);
  });

  test("an event has retry fields from its first delivery; other payloads accept an answer and have none", async () => {
    const { slack, ada, ask } = await startQuestion();
    const { envelopes } = await connect(slack);
    ask();
    await ada.command("/imagine", "a cat", ada.direct());
    expect(envelopes()[0]).toMatchObject({
      type: "events_api",
      accepts_response_payload: false,
      retry_attempt: 0,
      retry_reason: "",
    });
    expect(envelopes()[1]).toMatchObject({ type: "slash_commands", accepts_response_payload: true });
    expect(envelopes()[1]).not.toHaveProperty("retry_attempt");
  });

  test("a delivery that is not acknowledged in time is repeated in the same envelope, and is a violation", async () => {
    const { slack, ask } = await startQuestion({ ackMs: 500 });
    const { envelopes } = await connect(slack, (envelope) => envelope["retry_attempt"] === 1);
    const question = ask();
    await slack.acknowledged();
    const [first, second] = envelopes();
    expect(second).toMatchObject({ envelope_id: first?.["envelope_id"], retry_attempt: 1, retry_reason: "timeout" });
    expect(second?.["payload"]).toEqual(first?.["payload"]);
    expect(question.deliveries[0]?.attempts.map(({ isAcknowledged }) => isAcknowledged)).toEqual([false, true]);
    expect(slack.violations.map(({ sentence }) => sentence)).toEqual([
      expect.stringMatching(/^message \(envelope-\w+\) was not acknowledged: nothing came within 500 ms\.$/),
    ]);
    slack.allow("late-ack");
  });

  test("a delivery on a lost connection is repeated on another one, without a violation", async () => {
    const { slack, ask } = await startQuestion();
    const lost = await connect(slack, () => false);
    ask();
    await once(lost.socket, "message");
    lost.socket.terminate();
    const { envelopes } = await connect(slack);
    await slack.acknowledged();
    expect(envelopes()).toMatchObject([{ retry_attempt: 1, retry_reason: "connection_failed" }]);
  });

  test("an event waits for a connection; a command without one fails at once", async () => {
    const { slack, ada, ask } = await startQuestion();
    ask("early");
    expect(await ada.command("/imagine", "x", ada.direct())).toMatchObject({ isAcknowledged: false });
    const { envelopes } = await connect(slack);
    await slack.acknowledged();
    expect(envelopes().map(({ type }) => type)).toEqual(["events_api"]);
  });

  test("an eleventh connection is refused", async () => {
    const { slack } = await startQuestion({ maxConnections: 1 });
    await connect(slack);
    const { heard } = await connect(slack);
    expect(heard).toMatchObject([{ type: "disconnect", reason: "too_many_websockets" }]);
  });

  test.each(["warning", "refresh_requested", "link_disabled"] as const)(
    "a connection receives nothing more after a disconnect with %s",
    async (reason) => {
      const { slack, ask } = await startQuestion();
      const leaving = await connect(slack);
      const staying = await connect(slack);
      slack.disconnect(reason, { isOne: true });
      await once(leaving.socket, "message");
      expect(leaving.heard.at(-1)).toMatchObject({ type: "disconnect", reason });
      ask();
      ask();
      await slack.acknowledged();
      expect([leaving.envelopes().length, staying.envelopes().length]).toEqual([0, 2]);
    },
  );

  test("the simulator completes the close handshake, unless a test leaves the handshake open", async () => {
    const { slack } = await startQuestion();
    const polite = await connect(slack);
    slack.disconnect("warning");
    polite.socket.close(1000);
    const [code] = (await once(polite.socket, "close")) as [number];
    expect(code).toBe(1000);
    const ignored = await connect(slack);
    slack.disconnect("warning", { completesClose: false });
    await once(ignored.socket, "message");
    ignored.socket.close(1000);
    await callApi(slack, "auth.test");
    expect(ignored.socket.readyState).toBe(WebSocket.CLOSING);
  });

  test("the simulator ignores invalid data on a socket", async () => {
    const { slack, ask } = await startQuestion();
    const { socket } = await connect(slack);
    socket.send("{");
    socket.send('{"envelope_id":"unknown"}');
    ask();
    await slack.acknowledged();
  });

  test("a test can drop connections without notice", async () => {
    const { slack } = await startQuestion();
    const { socket } = await connect(slack);
    slack.dropConnections();
    const [code] = (await once(socket, "close")) as [number];
    expect(code).toBe(1006);
  });
});
