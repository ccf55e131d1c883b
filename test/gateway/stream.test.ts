import { describe, expect, test } from "vitest";
import {
  type Answer,
  chunk,
  cut,
  DONE,
  event,
  events,
  FINISH,
  hanging,
  ROLE,
  startFaultServer,
  stream,
  words,
} from "../support/fault-server.ts";
import { connect, KEY, open, type Reading, readAnswer, request } from "../support/gateway-client.ts";

/** Long enough for a busy machine to send something, and short enough to wait for. */
const SHORT_MS = 150;

async function read(answer: Answer, limits = {}): Promise<Reading> {
  const { url } = await startFaultServer(answer);
  return readAnswer(connect(url, { limits: { attempts: 1, ...limits } }), request, open);
}

/** Sends `first`, then repeats the same event until the connection closes. */
function repeating(bytes: string, first = bytes): Answer {
  return (response) => {
    hanging(first)(response, undefined as never);
    const timer = setInterval(() => response.writableEnded || response.write(bytes), 10);
    response.on("close", () => clearInterval(timer));
  };
}

describe("a complete answer", () => {
  test.each<[string, Answer]>([
    ["ends with a finish_reason and no [DONE]", events(ROLE, words("Hello"), FINISH)],
    ["ends with [DONE] and no finish_reason", events(ROLE, words("Hello"), DONE)],
    ["closes the connection after the finish_reason", cut(words("Hello"), FINISH)],
    ["leaves the connection open after the finish_reason", hanging(words("Hello"), FINISH)],
    ["has no blank line after the last event", events(words("Hello"), "data: [DONE]")],
  ])("an answer is complete if the gateway %s", async (_, answer) => {
    const { text, error } = await read(answer, { tailMs: 20 });
    expect({ text, error }).toEqual({ text: "Hello", error: undefined });
  });

  test("an answer is complete with finish_reason length, content_filter, tool_calls or function_call, which pass through", async () => {
    for (const finish of ["length", "content_filter", "tool_calls", "function_call"]) {
      const { chunks, error } = await read(events(words("Hel"), event(chunk({ finish })), DONE));
      expect(error).toBeUndefined();
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe(finish);
    }
  });
});

describe("a partial answer", () => {
  const character = Buffer.from(words("日本"));
  test.each<[string, Answer]>([
    ["it ends with neither finish_reason nor [DONE]", events(ROLE, words("Hel"))],
    ["the connection closes between two events", cut(words("Hel"))],
    ["the connection closes inside a line", cut(words("Hel"), words("lo").slice(0, 30))],
    ["the body ends inside a line", events(words("Hel"), words("lo").slice(0, 30))],
    ["the body ends inside a character", events(words("Hel"), character.subarray(0, character.indexOf("本") + 1))],
  ])("an answer is partial if %s", async (_, answer) => {
    const { text, error } = await read(answer);
    expect(text).toBe("Hel");
    expect(error).toMatchObject({ name: "GatewayError", kind: "interrupted" });
  });

  test("an answer with a refusal is partial only if the refusal replaces the answer", async () => {
    const refusal = event({ error: { code: "model_not_found", message: "no such model" } });
    const atOnce = await read(events(ROLE, refusal));
    expect(atOnce).toMatchObject({ text: "", error: { kind: "rejected", status: 404 } });
    const behindText = await read(events(ROLE, words("Hel"), refusal));
    expect(behindText).toMatchObject({ text: "Hel", error: { kind: "interrupted" } });
  });

  test("an answer is partial if the gateway goes silent", async () => {
    const { text, error } = await read(hanging(words("Hel")), { idleMs: SHORT_MS });
    expect(text).toBe("Hel");
    expect(error).toMatchObject({ kind: "stalled", message: expect.stringContaining(`${SHORT_MS} ms`) });
  });

  test("an answer is partial if only keep-alive comments come", async () => {
    const { text, error } = await read(repeating(": keepalive\n\n", words("Hel")), { idleMs: SHORT_MS });
    expect(text).toBe("Hel");
    expect(error).toMatchObject({ kind: "stalled" });
  });

  test("an answer is partial if only empty deltas come", async () => {
    for (const delta of [{ content: "" }, {}, { content: null, reasoning: "" }, { tool_calls: [] }]) {
      const { text, error } = await read(repeating(event(chunk({ delta }))), { firstTokenMs: SHORT_MS });
      expect({ text, error }).toMatchObject({ text: "", error: { kind: "stalled" } });
    }
  });

  test("an answer is partial if an error object comes in a data event", async () => {
    const error = { type: "server_error", code: "boom", message: `upstream died, key ${KEY}`, param: null };
    const reading = await read(events(words("Hel"), event({ error }), words("lo"), DONE));
    expect(reading.text).toBe("Hel");
    expect(reading.error).toMatchObject({ kind: "interrupted", type: "server_error", code: "boom" });
    expect(String(reading.error)).toContain("upstream died");
    expect(String(reading.error)).not.toContain(KEY);
  });

  test("an answer is partial if an error event comes", async () => {
    const { text, error } = await read(events(words("Hel"), 'event: error\ndata: {"message":"overloaded"}\n\n', DONE));
    expect(text).toBe("Hel");
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("overloaded") });
  });

  test("an answer is partial if a line exceeds the limit, and memory stays bounded", async () => {
    const piece = Buffer.alloc(1_048_576, "x");
    const before = process.memoryUsage().rss;
    const misbehaving: Answer = async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`${words("Hel")}data: `);
      for (let sent = 0; sent < 64 && !response.destroyed; sent++) {
        await new Promise<void>((resolve) => response.write(piece, () => resolve()));
      }
      response.end();
    };
    const { text, error } = await read(misbehaving, { maxEventBytes: 1_048_576 });
    expect(text).toBe("Hel");
    expect(error).toMatchObject({ kind: "interrupted" });
    // The stream's 64 chunks together are eight times as large as this limit.
    expect(process.memoryUsage().rss - before).toBeLessThan(8 * 1_048_576 * 4);
  });

  test("an answer is partial at the total timeout", async () => {
    const { text, error } = await read(repeating(words("a")), { totalMs: 5 * SHORT_MS });
    expect(text).toMatch(/^a+$/);
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("too long") });
  });
});

describe("unusual chunks", () => {
  test("chunks without choices, or with usage only, are harmless", async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const { chunks, error } = await read(
      events(words("Hello"), event({ id: "x" }), FINISH, event({ choices: [], usage }), DONE),
    );
    expect(error).toBeUndefined();
    expect(chunks.every(({ choices }) => Array.isArray(choices))).toBe(true);
    expect(chunks.at(-1)?.usage).toEqual(usage);
  });

  test("chunks of other choices pass through and do not finish the answer", async () => {
    const { chunks, error } = await read(
      events(event(chunk({ index: 1, finish: "stop" })), event(chunk({ index: 1, delta: { content: "b" } }))),
    );
    expect(chunks.map(({ choices }) => choices[0]?.index)).toEqual([1, 1]);
    expect(error).toMatchObject({ kind: "interrupted" });
  });
});

test("the client waits for a silent model that thinks longer than an answer can be silent, under any field name", async () => {
  const thoughts = [
    { reasoning_content: "hmm" },
    { content: "", reasoning: "hmm" },
    { reasoning_details: [{ type: "reasoning.text", text: "hmm" }] },
    { content: [{ type: "thinking", thinking: [{ type: "text", text: "hmm" }] }] },
  ];
  for (const delta of thoughts) {
    const { url } = await startFaultServer((response) => {
      repeating(event(chunk({ delta })))(response, undefined as never);
      setTimeout(() => response.end(words("Hello") + FINISH + DONE), 3 * SHORT_MS);
    });
    const gateway = connect(url, { limits: { attempts: 1, firstTokenMs: SHORT_MS } });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
  }
});

test("the client does not read chunks after [DONE], although the connection stays open", async () => {
  const { url, received } = await startFaultServer(hanging(words("Hello"), DONE, words(" again")));
  const { text, error } = await readAnswer(connect(url), request, open);
  expect({ text, error }).toEqual({ text: "Hello", error: undefined });
  await received[0]?.closed;
});

test("a connection is reused after a complete answer, even if the end of its body comes later", async () => {
  const calls = 10;
  const server = await startFaultServer((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(stream("Hello"), () => setTimeout(() => response.end(), 5));
  });
  const gateway = connect(server.url);
  for (let call = 0; call < calls; call++) {
    await readAnswer(gateway, request, open);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // One would be enough, but a busy machine can be slow.
  expect(server.connections()).toBeLessThan(calls);
});

test("the client loses no part of an answer that arrives in one read", async () => {
  const many = 20_000;
  const { url } = await startFaultServer((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let sent = 0; sent < many; sent++) response.write(words("a"));
    response.end(FINISH + DONE);
  });
  const { text, error } = await readAnswer(connect(url), request, open);
  expect({ chars: text.length, error }).toEqual({ chars: many, error: undefined });
});
