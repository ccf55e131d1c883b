import { once } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test } from "vitest";
import { startHttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/metrics.ts";
import { silent } from "../support/log.ts";

/** What the server answers to a request as it stands, with a limit of ten bytes. */
async function send(head: string, body = ""): Promise<string> {
  const echo = new Hono()
    .all("/echo", async (context) => context.text(`said: ${await context.req.text()}`))
    .post("/copy", async (context) => context.text(`copied: ${await new Request(context.req.raw).text()}`));
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    log: silent,
    health: {},
    metrics: createMetrics(),
    mounts: [echo],
    maxBodyBytes: 10,
    closeTimeoutMs: 200,
  });
  onTestFinished(() => server.close());
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => {});
  socket.write(`${head}\r\nHost: here\r\nConnection: close\r\n\r\n${body}`);
  await once(socket, "close");
  return Buffer.concat(chunks).toString();
}

const PIECES = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked";

describe("createBodyLimit", () => {
  test("lets pass what is short enough, with a length, in pieces and without a body", async () => {
    expect(await send("POST /echo HTTP/1.1\r\nContent-Length: 10", "0123456789")).toMatch(/ 200 [^]*said: 0123456789$/);
    expect(await send(PIECES, "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")).toMatch(/ 200 [^]*said: 0123456789$/);
    expect(await send("POST /echo HTTP/1.1")).toMatch(/ 200 [^]*said: $/);
    expect(await send("GET /echo HTTP/1.1")).toMatch(/ 200 [^]*said: $/);
  });

  test("hands on a request that can be copied, also without a body", async () => {
    expect(await send("POST /copy HTTP/1.1")).toMatch(/ 200 [^]*copied: $/);
    expect(await send(PIECES.replace("/echo", "/copy"), "1\r\nx\r\n0\r\n\r\n")).toMatch(/ 200 [^]*copied: x$/);
  });

  test("refuses what is too long, with a length and in pieces", async () => {
    expect(await send("POST /echo HTTP/1.1\r\nContent-Length: 11", "01234567890")).toMatch(/ 413 [^]*10 bytes/);
    expect(await send(PIECES, "b\r\n01234567890\r\n0\r\n\r\n")).toMatch(/ 413 [^]*10 bytes/);
  });
});
