import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/sandbox/server.ts";
import { start } from "./sandbox.ts";

async function send({ url }: Sandbox, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(bytes);
  return await text(socket);
}

describe("refusals before a request is complete", () => {
  test.each([
    ["no HTTP at all", "SSH-2.0-OpenSSH_9\r\n\r\n", 400, "malformed_request"],
    [
      "two lengths",
      "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["endless headers", `GET / HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(20_000)}\r\n\r\n`, 431, "headers_too_large"],
    [
      "another expectation",
      "GET / HTTP/1.1\r\nhost: x\r\nexpect: pie\r\nconnection: close\r\n\r\n",
      417,
      "unknown_expectation",
    ],
  ])("the sandbox refuses an incomplete request with an error object: %s", async (_, bytes, status, code) => {
    const answer = await send(await start(), bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} \\w`));
    expect(answer).toMatch(/content-type: application\/json/i);
    const [json = ""] = /\{.*\}/s.exec(answer) ?? [];
    expect(JSON.parse(json)).toEqual({
      error: { type: "invalid_request_error", code, message: expect.stringMatching(/\.$/), param: null },
    });
  });

  test("the sandbox does not write a refusal into a response that has started", async () => {
    const sandbox = await start({ tokensPerSecond: 1 });
    const body = JSON.stringify({
      model: "sandbox-chat",
      stream: true,
      messages: [{ role: "user", content: "count to 900" }],
    });
    const socket = connect(Number(new URL(sandbox.url).port), "127.0.0.1");
    socket.setEncoding("utf8");
    let received = "";
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    await new Promise<void>((resolve) => {
      socket.on("data", (part: string) => {
        received += part;
        if (received.includes('"role":"assistant"')) resolve();
      });
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-sandbox-all\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    socket.write("garbage\r\n\r\n");
    await closed;
    expect(received).not.toContain("malformed_request");
  });
});
