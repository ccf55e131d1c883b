import { randomBytes } from "node:crypto";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type Answer, startFaultServer, stream } from "../support/fault-server.ts";
import { connect, failureOf, ignoring, open, readAnswer, request } from "../support/gateway-client.ts";

/** Hardly shorter when it is compressed, so that it comes in many pieces. */
const TEXT = `Grüße, 世界 👋. ${randomBytes(150_000).toString("base64")}`;
const once = { limits: { attempts: 1 } };

/** Answers with these bytes as they are, and says that they are compressed. */
function compressed(encoding: string, bytes: Buffer, status = 200): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "content-encoding": encoding });
    response.end(bytes);
  };
}

const completion = (content: string) =>
  Buffer.from(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content } }] }));

describe("an answer that is compressed though nobody asked for it", () => {
  test.each([
    ["gzip", gzipSync],
    ["X-GZip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ])("is read when it is %s, as a stream and whole", async (encoding, compress) => {
    const { url, received } = await startFaultServer(
      compressed(encoding, compress(Buffer.from(stream(TEXT, "end")))),
      compressed(encoding, compress(completion(TEXT))),
    );
    const gateway = connect(url, once);
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: `${TEXT}end`, error: undefined });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: TEXT, error: undefined });
    expect(received[0]?.headers["accept-encoding"]).toBe("identity");
  });

  test("says what an error says", async () => {
    const body = gzipSync(JSON.stringify({ error: { message: "too much", code: "bad" } }));
    const { url } = await startFaultServer(compressed("gzip", body, 400));
    const failure = await failureOf(connect(url, once).streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ status: 400, code: "bad", message: expect.stringContaining("too much") });
  });

  test("keeps what came when it breaks off", async () => {
    const whole = gzipSync(stream("so far ", TEXT), { level: 0 });
    const { url } = await startFaultServer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
      response.write(whole.subarray(0, 600), () => response.socket?.destroy());
    });
    const { text, error } = await readAnswer(connect(url, once), request, open);
    expect(text).toMatch(/^so far /);
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("it closed the connection") });
  });

  test("is malformed when it is not what it says", async () => {
    const { url } = await startFaultServer(compressed("gzip", completion("plain")));
    expect(await failureOf(connect(url, once).streamChat(request, open, ignoring))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("cannot be read"),
    });
  });

  test("is malformed, and left at once, in a way that is not known", async () => {
    const { url, received } = await startFaultServer((response) => {
      response.writeHead(200, { "content-encoding": "compress" });
      response.write("more is coming");
    });
    expect(await failureOf(connect(url, once).streamChat(request, open, ignoring))).toMatchObject({
      kind: "malformed",
      message: expect.stringContaining("not asked for"),
    });
    await received[0]?.closed;
  });

  test("is as long as another may be, however small it comes", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, 120));
    const { url } = await startFaultServer(
      compressed("gzip", bomb),
      compressed("gzip", gzipSync(Buffer.concat([Buffer.from("data: "), Buffer.alloc(64 << 20, 120)]))),
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
