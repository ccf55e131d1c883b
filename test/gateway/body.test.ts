import { randomBytes } from "node:crypto";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { Agent } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { dispatchRequest, type GatewayResponse } from "../../src/gateway/body.ts";
import { type Answer, body, type FaultServer, startFaultServer, stream } from "../support/fault-server.ts";
import { connect, failureOf, ignoring, open, readAnswer, request } from "../support/gateway-client.ts";

async function send(server: FaultServer, signal: AbortSignal = open): Promise<GatewayResponse> {
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  return dispatchRequest(agent, { origin: server.url, path: "/", method: "GET" }, signal);
}

/** Listens, and resolves to everything that it received. */
function listen({ body }: GatewayResponse): Promise<{ text: string; error: unknown }> {
  let text = "";
  return new Promise((resolve) => {
    body.listen({
      onData: (bytes) => (text += bytes.toString()),
      onEnd: () => resolve({ text, error: undefined }),
      onError: (error) => resolve({ text, error }),
    });
  });
}

describe("the body of a response", () => {
  test("the client delivers a body that arrived before anyone listened", async () => {
    const server = await startFaultServer(body(200, "text/plain", "hello"));
    const answer = await send(server);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await listen(answer)).toEqual({ text: "hello", error: undefined });
  });

  test("an abandoned body delivers nothing and closes the connection", async () => {
    const server = await startFaultServer((response) => {
      response.writeHead(200);
      response.write("hello");
    });
    const answer = await send(server);
    const told: unknown[] = [];
    const tell = (what: unknown): void => void told.push(what);
    answer.body.destroy();
    answer.body.destroy();
    answer.body.listen({ onData: () => tell("data"), onEnd: () => tell("end"), onError: tell });
    await server.received[0]?.closed;
    expect(told).toEqual([]);
  });

  test("draining a body that is too large closes the connection", async () => {
    const server = await startFaultServer((response) => {
      response.writeHead(200);
      const more = (error?: Error | null): void => {
        if (!error && !response.destroyed) response.write("x".repeat(30_000), more);
      };
      more();
    });
    const answer = await send(server);
    answer.body.drain();
    await server.received[0]?.closed;
  });
});

/** It cannot be compressed much, so it arrives in many chunks. */
const TEXT = `Grüße, 世界 👋. ${randomBytes(150_000).toString("base64")}`;
const once = { limits: { attempts: 1 } };

/** Sends these bytes unchanged but declares them as compressed. */
function compressed(encoding: string, bytes: Buffer, status = 200): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "content-encoding": encoding });
    response.end(bytes);
  };
}

const completion = (content: string) =>
  Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content } }] }));

describe("a response that is compressed although no one asked for it", () => {
  test.each([
    ["gzip", gzipSync],
    ["X-GZip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ])("the client reads a response compressed with %s, as a stream and whole", async (encoding, compress) => {
    const { url, received } = await startFaultServer(
      compressed(encoding, compress(Buffer.from(stream(TEXT, "end")))),
      compressed(encoding, compress(completion(TEXT))),
    );
    const gateway = connect(url, once);
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: `${TEXT}end`, error: undefined });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: TEXT, error: undefined });
    expect(received[0]?.headers["accept-encoding"]).toBe("identity");
  });

  test("a compressed error keeps its message", async () => {
    const body = gzipSync(JSON.stringify({ error: { message: "too much", code: "bad" } }));
    const { url } = await startFaultServer(compressed("gzip", body, 400));
    const failure = await failureOf(connect(url, once).streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ status: 400, code: "bad", message: expect.stringContaining("too much") });
  });

  test("a compressed response that breaks off counts as truncated, and shows only its own text", async () => {
    const whole = gzipSync(stream("so far ", TEXT), { level: 0 });
    const { url } = await startFaultServer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
      response.write(whole.subarray(0, 600), () => response.socket?.destroy());
    });
    const { text, error } = await readAnswer(connect(url, once), request, open);
    // The last bytes may still be in the compressor when the connection closes.
    expect(`so far ${TEXT}`).toContain(text);
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("it closed the connection") });
  });

  test("a response whose compression differs from the declared one is malformed", async () => {
    const { url } = await startFaultServer(compressed("gzip", completion("plain")));
    expect(await failureOf(connect(url, once).streamChat(request, open, ignoring))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("cannot be read"),
    });
  });

  test("a response with an unknown compression is malformed and aborted at once", async () => {
    const { url, received } = await startFaultServer((response) => {
      response.writeHead(200, { "content-encoding": "compress" });
      response.write("more is coming");
    });
    expect(await failureOf(connect(url, once).streamChat(request, open, ignoring))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("did not ask for"),
    });
    await received[0]?.closed;
  });

  test("a compressed response has the same size limit as others, however small it arrives", async () => {
    const bomb = gzipSync(Buffer.alloc(8 << 20, 120));
    const { url } = await startFaultServer(
      compressed("gzip", bomb),
      compressed("gzip", gzipSync(Buffer.concat([Buffer.from("data: "), Buffer.alloc(8 << 20, 120)]))),
    );
    const gateway = connect(url, { limits: { attempts: 1, maxBodyBytes: 1 << 20, maxEventBytes: 1 << 20 } });
    expect(await failureOf(gateway.listModels(open))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("larger than"),
    });
    const { error } = await readAnswer(gateway, request, open);
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("event of more than") });
  });
});
