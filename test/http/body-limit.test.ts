import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { type BodyLimit, limitBody } from "../../src/http/body-limit.ts";
import { startServer } from "./http.ts";

interface Connection {
  socket: Socket;
  answer(): string;
  /** Everything that was received, available when the connection is closed. */
  whole: Promise<string>;
}

/** A server that responds with each request's body, and the requests as they arrive. */
async function setUp(limit: BodyLimit = { maxBytes: 10 }, maxBodyBytes?: number) {
  const { log, lines } = recordingLog();
  const app = new Hono()
    .all("/echo", limitBody(limit), async (context) => context.text(`said: ${await context.req.text()}`))
    .post("/copy", limitBody(limit), async (context) =>
      context.text(`copied: ${await new Request(context.req.raw).text()}`),
    );
  const server = await startServer({ log, mounts: [app], ...(maxBodyBytes !== undefined && { maxBodyBytes }) });

  function open(head: string, body: string | Uint8Array = ""): Connection {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => {});
    socket.write(`${head}\r\nHost: here\r\nConnection: close\r\n\r\n`);
    socket.write(body);
    const answer = () => Buffer.concat(chunks).toString();
    return { socket, answer, whole: once(socket, "close").then(answer) };
  }

  return { open, lines, send: (head: string, body?: string) => open(head, body).whole };
}

const PIECES = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked";

describe("limitBody", () => {
  test("limitBody passes on short bodies, whether they have a Content-Length or are chunked, and requests without a body", async () => {
    const { send } = await setUp();
    expect(await send("POST /echo HTTP/1.1\r\nContent-Length: 10", "0123456789")).toMatch(/ 200 [^]*said: 0123456789$/);
    expect(await send(PIECES, "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")).toMatch(/ 200 [^]*said: 0123456789$/);
    expect(await send("POST /echo HTTP/1.1")).toMatch(/ 200 [^]*said: $/);
  });

  test("limitBody passes on a request that a handler can clone, even without a body", async () => {
    const { send } = await setUp();
    expect(await send("POST /copy HTTP/1.1")).toMatch(/ 200 [^]*copied: $/);
    expect(await send(PIECES.replace("/echo", "/copy"), "1\r\nx\r\n0\r\n\r\n")).toMatch(/ 200 [^]*copied: x$/);
  });

  test("limitBody rejects an oversized body early, whether it has a Content-Length or is chunked", async () => {
    const { send } = await setUp();
    expect(await send("POST /echo HTTP/1.1\r\nContent-Length: 11")).toMatch(/ 413 [^]*10 bytes/);
    expect(await send(PIECES, "b\r\n01234567890\r\n")).toMatch(/ 413 [^]*10 bytes/);
  });

  test("limitBody aborts a body that does not arrive in time", async () => {
    const { send } = await setUp({ maxBytes: 10, timeoutMs: 50 });
    expect(await send("POST /echo HTTP/1.1\r\nContent-Length: 10", "01")).toMatch(/ 408 [^]*took too long/);
    expect(await send(PIECES, "2\r\n01\r\n")).toMatch(/ 408 [^]*took too long/);
  });

  test("limitBody serves a short body next to many endless bodies, and answers the others with a request to retry", async () => {
    const [maxBytes, maxBodyBytes] = [256 * 1024, 1024 * 1024];
    const { open, send } = await setUp({ maxBytes, timeoutMs: 600_000 }, maxBodyBytes);
    const unfinished = `${maxBytes.toString(16)}\r\n${"x".repeat(maxBytes - 1)}`;
    const others = Array.from({ length: 40 }, () => open(PIECES, unfinished));
    // Four bodies would fill the memory, so most are rejected. Three keep their share.
    const refused = others.slice(0, 37).map((_, index) => nthRefusal(others, index + 1));
    await Promise.all(refused);
    expect(others.filter(({ answer }) => / 503 [^]*too much right now/.test(answer()))).toHaveLength(37);
    expect(await send(PIECES, "2\r\nhi\r\n0\r\n\r\n")).toMatch(/ 200 [^]*said: hi$/);
  });

  test("a body frees its share of the memory once it is answered or its client disconnects", async () => {
    const { open, send, lines } = await setUp({ maxBytes: 100 }, 150);
    const body = "x".repeat(70);
    const whole = "POST /echo HTTP/1.1\r\nContent-Length: 70";
    for (let times = 0; times < 5; times++) {
      expect(await send(whole, body)).toMatch(/ 200 /);
      const { socket } = open("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 71");
      // The server starts to read at this point.
      await once(socket, "data");
      socket.write(body, () => socket.destroy());
      await once(socket, "close");
      // The server notices the disconnect a little later.
      while (!/ 200 /.test(await send(whole, body)));
    }
    expect(lines.filter(({ level }) => Number(level) >= 30)).toEqual([]);
  });
});

/** Resolves when this many connections are closed. */
function nthRefusal(connections: readonly Connection[], count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let ended = 0;
  for (const { whole } of connections) void whole.then(() => ++ended === count && resolve());
  return promise;
}

describe("a path that accepts no body", () => {
  test.each(["/nothing", "/healthz", "/relay/v1/x"])(
    "the path %s answers before its body has arrived",
    async (path) => {
      const { send } = await setUp();
      const head = PIECES.replace("/echo", path);
      expect(await send(head)).toMatch(/ 404 /);
      expect(await send(head, "5\r\n012")).toMatch(/ 404 /);
    },
  );
});
