import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { App } from "@slack/bolt";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import { toBoltLogger } from "../../../../adapters/slack/listen/intake.ts";
import { openSocket, readEnvelope } from "../../../../adapters/slack/listen/sockets.ts";
import { silent } from "../../../support/log.ts";

/** Something in Slack's place that says whatever it is told to, and keeps what it is answered. */
async function startOdd(greeting: string | undefined) {
  const server = createServer((_, response) => {
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/link`;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ok: true, url }));
  });
  const sockets = new WebSocketServer({ server });
  const said: string[] = [];
  let changed = Promise.withResolvers<void>();
  sockets.on("connection", (socket) => {
    changed.resolve();
    socket.on("close", () => changed.resolve());
    socket.on("message", (data: Buffer) => {
      said.push(String(data));
      changed.resolve();
    });
    if (greeting !== undefined) socket.send(greeting);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
    server.closeAllConnections();
  });
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  return {
    apiUrl,
    said,
    clients: sockets.clients,
    /** Resolves when that is so; asked whenever a socket comes, goes or says something. */
    async until(isSo: () => boolean) {
      while (!isSo()) {
        await changed.promise;
        changed = Promise.withResolvers();
      }
    },
    say: (frame: string | Buffer) => {
      for (const socket of sockets.clients) socket.send(frame);
    },
  };
}

const HELLO = JSON.stringify({ type: "hello", num_connections: 1 });

function open(apiUrl: string, signal: AbortSignal) {
  const boltLog = toBoltLogger(silent);
  const receiver = { init: () => {}, start: async () => {}, stop: async () => {} };
  const authorize = async () => ({ botToken: "xoxb-1", botId: "B1", botUserId: "U1" });
  const app = new App({ receiver, authorize, logger: boltLog, convoStore: false });
  app.processEvent = ({ ack }) => ack();
  return openSocket({ app, appToken: "xapp-1", apiUrl, boltLog, log: silent }, signal);
}

const never = new AbortController().signal;

describe("a socket to Slack", () => {
  test("outlives whatever is said on it", async () => {
    const odd = await startOdd(HELLO);
    const line = await open(odd.apiUrl, never);
    const frames = [
      "null",
      "5",
      "[]",
      "not json",
      "",
      JSON.stringify({ type: "events_api" }),
      JSON.stringify({ type: "events_api", envelope_id: "e", payload: null }),
      JSON.stringify({ type: "events_api", envelope_id: "e", payload: { event: null } }),
      JSON.stringify({ type: "events_api", envelope_id: "e", payload: { event: { type: 5 } } }),
      JSON.stringify({ type: "interactive", envelope_id: "e", payload: null }),
      JSON.stringify({ type: "slash_commands" }),
      JSON.stringify({ type: "of tomorrow", payload: { event: 1 } }),
    ];
    for (const frame of frames) odd.say(frame);
    odd.say(Buffer.from([1, 2, 3]));
    odd.say(JSON.stringify({ type: "events_api", envelope_id: "last", payload: { event: { type: "message" } } }));
    await odd.until(() => odd.said.some((text) => text.includes('"last"')));
    await line.close();
    await odd.until(() => odd.clients.size === 0);
  });

  test("that is cut ends", async () => {
    const odd = await startOdd(HELLO);
    const line = await open(odd.apiUrl, never);
    for (const socket of odd.clients) socket.terminate();
    expect(await line.ended).toBeUndefined();
    await line.gone;
  });

  test("that is closed before its greeting was none", async () => {
    const odd = await startOdd(undefined);
    const opening = open(odd.apiUrl, never);
    await odd.until(() => odd.clients.size === 1);
    for (const socket of odd.clients) socket.close();
    await expect(opening).rejects.toThrow("before greeting it");
  });

  test("that does not greet is given up when the signal aborts, and does not stay", async () => {
    const odd = await startOdd(undefined);
    const ending = new AbortController();
    const opening = open(odd.apiUrl, ending.signal);
    await odd.until(() => odd.clients.size === 1);
    ending.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
    await odd.until(() => odd.clients.size === 0);
  });
});

const read = (value: unknown) => readEnvelope(JSON.stringify(value));

describe("an envelope", () => {
  test("says why a socket shall go", () => {
    expect(read({ type: "disconnect", reason: "warning" })).toMatchObject({ type: "disconnect", reason: "warning" });
  });

  test("holds an event or does not", () => {
    const holds = (payload: unknown) => !read({ type: "events_api", envelope_id: "e", payload }).isEmptyEvent;
    expect(holds({ event: { type: "message" } })).toBe(true);
    for (const payload of [undefined, null, {}, { event: null }, { event: {} }, { event: { type: 5 } }]) {
      expect(holds(payload)).toBe(false);
    }
    expect(read({ type: "slash_commands", payload: {} }).isEmptyEvent).toBe(false);
    expect(read({ type: "events_api", envelope_id: "e", payload: { type: "app_rate_limited" } })).toMatchObject({
      id: "e",
      payloadType: "app_rate_limited",
    });
  });

  test("is read from anything without failing", () => {
    for (const odd of [undefined, 5, Buffer.from("x"), "", "x", "null", "[]", "5"]) {
      expect(readEnvelope(odd)).toMatchObject({ type: undefined, isEmptyEvent: false });
    }
  });
});
