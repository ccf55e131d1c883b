import { describe, expect, test } from "vitest";
import { type Answer, body, DONE, events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect, open, type Reading, readAnswer, request } from "../support/gateway-client.ts";

async function read(answer: Answer, limits = {}): Promise<Reading> {
  const { url } = await startFaultServer(answer);
  return readAnswer(connect(url, { limits: { attempts: 1, ...limits } }), request, open);
}

describe("an answer is complete", () => {
  test("when a whole JSON answer comes instead of a stream", async () => {
    const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
    const { chunks, error } = await read(
      json(200, {
        id: "chatcmpl-9",
        object: "chat.completion",
        created: 1,
        model: "answering-model",
        choices: [
          { index: 0, message: { role: "assistant", content: "Hello", tool_calls: [call] }, finish_reason: "stop" },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      }),
    );
    expect(error).toBeUndefined();
    expect(chunks.map(({ choices, usage }) => choices[0] ?? usage)).toEqual([
      { index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: null },
      { index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: "stop" },
      { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ]);
  });

  test("when white space comes before the JSON", async () => {
    const choices = [{ message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }];
    const answer = body(200, "application/json", ` \n\n ${JSON.stringify({ choices })}`);
    expect(await read(answer)).toMatchObject({ text: "Hello", error: undefined });
  });

  test("when its content type is another one, and when blank lines and a byte order mark come first", async () => {
    const text = `\uFEFF\r\n\n${stream("Hello")}`;
    for (const type of ["text/plain", "application/json", "text/html"]) {
      expect(await read(body(200, type, text))).toMatchObject({ text: "Hello", error: undefined });
    }
  });
});

describe("an answer is malformed", () => {
  test("when it is a web page", async () => {
    const { error } = await read(body(200, "text/html", "<!doctype html><title>Welcome</title>"));
    expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("web page") });
  });

  test("when it is empty", async () => {
    const { error } = await read(body(200, "text/event-stream", ""));
    expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("empty") });
  });

  test("when it is [DONE] without any choice", async () => {
    const { error } = await read(events(DONE));
    expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("empty") });
  });

  test("when it is JSON that is no completion", async () => {
    const { error } = await read(json(200, { hello: "world" }));
    expect(error).toMatchObject({ kind: "malformed" });
  });

  test("when it is not HTTP", async () => {
    const { error } = await read((response) => response.socket?.end("SSH-2.0-OpenSSH_9.6\r\n"));
    expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("not HTTP") });
  });
});

test("A whole answer to a streaming request is read only as far as a body may go", async () => {
  const { url } = await startFaultServer(json(200, { choices: [{ message: { content: "x".repeat(5_000) } }] }));
  const { error } = await readAnswer(connect(url, { limits: { maxBodyBytes: 1_000 } }), request, open);
  expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("1000 characters") });
});
