import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocketServer } from "ws";
import { createSlackAdapter } from "../../../../adapters/slack/adapter.ts";
import { openSocket } from "../../../../adapters/slack/hear/sockets.ts";
import { toBoltLogger } from "../../../../adapters/slack/hear/transport.ts";
import { silent } from "../../../../lab/support/log.ts";
import { startSlack } from "../../../support/slack.ts";
import { startStage } from "../stage.ts";

const OPEN = "apps.connections.open";

describe("the sockets to Slack", () => {
  test("the adapter keeps two sockets, and each event arrives on one of them", async () => {
    const { slack, ada, events, heard } = await startStage();
    expect(slack.connections()).toBe(2);
    ada.dm("hello");
    await heard();
    expect(events).toHaveLength(1);
  });

  test("when Slack refreshes a socket, the adapter replaces the socket at once and loses nothing", async () => {
    const { slack, ada, adapter, events, heard } = await startStage();
    slack.disconnect("refresh_requested", { isOne: true });
    expect(adapter.isConnected()).toBe(true);
    ada.dm("meanwhile");
    await heard();
    expect(events).toHaveLength(1);
    await slack.until(() => slack.connections() === 2, "another socket");
  });

  test("the adapter acknowledges an event in progress once, on the socket that Slack asked to close", async () => {
    const stored = Promise.withResolvers<void>();
    const { slack, ada, events } = await startStage({ accept: () => stored.promise });
    ada.dm("hello");
    const delivery = await slack.until(() => slack.deliveries[0], "the delivery");
    slack.disconnect("warning");
    await slack.until(() => slack.connections() === 2, "two other sockets");
    stored.resolve();
    await slack.acknowledged();
    expect(delivery.attempts).toMatchObject([{ isAcknowledged: true }]);
    expect(events).toHaveLength(1);
  });

  test("refreshing all sockets under load drops no event", async () => {
    const { slack, ada, events, heard } = await startStage();
    const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`);
    for (const [index, text] of texts.entries()) {
      ada.dm(text);
      if (index % 10 === 5) slack.disconnect("refresh_requested", { completesClose: index % 20 === 5 });
      if (index === 28) slack.dropConnections();
      await slack.until(() => slack.connections() > 0, "a socket");
    }
    await heard();
    const heardTexts = new Set(events.map((event) => (event.kind === "message" ? event.text : "")));
    expect(heardTexts).toEqual(new Set(texts));
  });

  test("the adapter reopens dropped sockets, however often that fails", async () => {
    const { slack, ada, adapter, message } = await startStage();
    slack.failNext(OPEN, { cutsConnection: true });
    slack.failNext(OPEN, { status: 503 });
    slack.failNext(OPEN, { error: "internal_error" });
    slack.dropConnections();
    await slack.until(() => slack.connections() === 2, "two sockets");
    expect(adapter.isConnected()).toBe(true);
    ada.dm("hello again");
    expect((await message(0)).text).toBe("hello again");
  });

  test("the adapter reopens sockets as soon as Slack allows that, and not before", async () => {
    const { slack } = await startStage();
    slack.failNext(OPEN, { retryAfterS: 1 });
    slack.disconnect("refresh_requested", { isOne: true });
    const tries = () => slack.requests.filter(({ method }) => method === OPEN).slice(2);
    await slack.until(() => tries().length === 2 && slack.connections() === 2, "another socket");
    const [refused, taken] = tries();
    expect((taken?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("an envelope without an event is acknowledged, and the next event arrives", async () => {
    const { slack, ada, message } = await startStage();
    const told = slack.reachEventLimit();
    expect(await told.outcome).toMatchObject({ isAcknowledged: true });
    ada.dm("still there?");
    expect((await message(0)).text).toBe("still there?");
  });

  test("a revoked token stops the adapter once, with a plain sentence, and does not crash the process", async () => {
    const reasons: string[] = [];
    const told = Promise.withResolvers<void>();
    const onFatal = (reason: string) => {
      reasons.push(reason);
      told.resolve();
    };
    const { slack, adapter } = await startStage({ onFatal });
    for (let count = 0; count < 4; count++) slack.failNext(OPEN, { error: "invalid_auth" });
    slack.dropConnections();
    await told.promise;
    await slack.until(() => slack.requests.filter(({ method }) => method === OPEN).length >= 4, "the second try");
    expect(reasons).toEqual([expect.stringMatching(/app-level token \(invalid_auth\).*SLACK_APP_TOKEN/)]);
    expect(adapter.isConnected()).toBe(false);
  });

  test("the adapter says what to do if it starts without a valid token", async () => {
    const slack = await startSlack();
    const adapter = createSlackAdapter({
      transport: { mode: "socket", appToken: "xapp-1-wrong" },
      installed: { botToken: slack.botToken },
      markKey: "key",
      apiUrl: slack.apiUrl,
      commands: [],
      listModels: async () => [],
      findTurn: async () => undefined,
      log: silent,
      onFatal: () => {},
      now: slack.now,
    });
    await expect(adapter.listen(async () => {})).rejects.toThrow(/app-level token \(\w+\).*connections:write/);
    await adapter.close();
  });

  test("no socket stays open after the end, not even one that was being opened", async () => {
    const { slack, adapter } = await startStage();
    slack.slow(OPEN, 200);
    slack.dropConnections();
    await adapter.close();
    await slack.until(() => slack.requests.filter(({ method }) => method === OPEN).length >= 2, "the calls");
    expect(slack.connections()).toBe(0);
    expect(adapter.isConnected()).toBe(false);
  });
});

/** A server that imitates Slack, can send anything, and records the responses. */
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
    /** Resolves when the condition is true. It is checked whenever a socket opens, closes or sends something. */
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
  const options = { appToken: "xapp-1", apiUrl, boltLog: toBoltLogger(silent), log: silent };
  return openSocket({ ...options, take: ({ ack }) => ack() }, signal);
}

const never = new AbortController().signal;

describe("a socket to Slack", () => {
  test("a socket survives any message", async () => {
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

  test("a dropped socket ends", async () => {
    const odd = await startOdd(HELLO);
    const line = await open(odd.apiUrl, never);
    for (const socket of odd.clients) socket.terminate();
    expect(await line.ended).toBeUndefined();
    await line.gone;
  });

  test("opening fails if Slack closes the socket before its hello", async () => {
    const odd = await startOdd(undefined);
    const opening = open(odd.apiUrl, never);
    await odd.until(() => odd.clients.size === 1);
    for (const socket of odd.clients) socket.close();
    await expect(opening).rejects.toThrow("before sending hello");
  });

  test("opening a socket without a hello ends when the signal aborts, and leaves no socket", async () => {
    const odd = await startOdd(undefined);
    const ending = new AbortController();
    const opening = open(odd.apiUrl, ending.signal);
    await odd.until(() => odd.clients.size === 1);
    ending.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
    await odd.until(() => odd.clients.size === 0);
  });
});
