import { StringDecoder } from "node:string_decoder";
import { array, assert, nat, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { createStreamDecoder, type StreamDecoder } from "../../src/gateway/stream-decoder.ts";
import {
  type Answer,
  body,
  chunk,
  DONE,
  event,
  events,
  FINISH,
  json,
  ROLE,
  startFaultServer,
  stream,
  words,
} from "../support/fault-server.ts";
import { connect, open, type Reading, readAnswer, request } from "../support/gateway-client.ts";

const LIMITS = { maxEventBytes: 10_000, maxAnswerChars: 10_000, maxBodyBytes: 10_000 };

function createDecoder(): { decoder: StreamDecoder; chunks: ChatCompletionChunk[] } {
  const chunks: ChatCompletionChunk[] = [];
  return { decoder: createStreamDecoder(LIMITS, createSafeText([]), (chunk) => chunks.push(chunk)), chunks };
}

function decode(parts: Uint8Array[]): { text: string; done: boolean; malformed: number } {
  const { decoder, chunks } = createDecoder();
  const utf8 = new StringDecoder("utf8");
  for (const part of parts) decoder.feed(utf8.write(Buffer.from(part)));
  decoder.end();
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  return { text, done: decoder.isDone(), malformed: decoder.tally.malformed };
}

const PLAIN = [ROLE, words("Grüße, "), words("日本 😀"), FINISH, DONE].join("");
const TEXT = "Grüße, 日本 😀";
// A JSON document can have several lines. They are joined with a line feed, which is white space in JSON.
const PRETTY = JSON.stringify(chunk({ delta: { content: TEXT } }), null, 1).replaceAll("\n", "\ndata: ");
const MULTI_LINE = `: keepalive\n\nid: 1\nevent: message\nretry: 10\ndata: ${PRETTY}\n\n${DONE}`;
const MIXED = [
  ROLE,
  ": keepalive\n\n",
  words("Grüße, ").replaceAll("\n", "\r\n"),
  `event: message\n${words("日本")}`,
  words(" 😀").replaceAll("\n", "\r"),
  FINISH,
  DONE,
].join("");

const CORPUS: Record<string, string> = {
  "line feeds": PLAIN,
  "carriage returns and line feeds": PLAIN.replaceAll("\n", "\r\n"),
  "carriage returns": PLAIN.replaceAll("\n", "\r"),
  "a byte order mark": `\uFEFF${PLAIN}`,
  "no blank line at the end": PLAIN.trimEnd(),
  "no blank lines between events": PLAIN.replaceAll("\n\n", "\n"),
  "no space behind the colon": PLAIN.replaceAll("data: ", "data:"),
  "all of these beside each other": MIXED,
  "comments, other fields and data over several lines": MULTI_LINE,
};

describe("a stream split in any way", () => {
  for (const [name, corpus] of Object.entries(CORPUS)) {
    const bytes = Buffer.from(corpus);
    test(`a stream gives the same text wherever it is split in two: ${name}`, () => {
      for (let at = 0; at <= bytes.length; at++) {
        const result = decode([bytes.subarray(0, at), bytes.subarray(at)]);
        expect({ at, ...result }).toEqual({ at, text: TEXT, done: true, malformed: 0 });
      }
    });
  }

  test("a stream gives the same text however it is split into many parts", () => {
    const bytes = Buffer.from(CORPUS["carriage returns and line feeds"] ?? "");
    assert(
      property(array(nat(bytes.length), { maxLength: 20 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        expect(decode(at.slice(1).map((end, index) => bytes.subarray(at[index], end))).text).toBe(TEXT);
      }),
      { numRuns: 200 },
    );
  });

  test("a stream gives the same text over a socket, in packets of a few bytes", async () => {
    for (const corpus of Object.values(CORPUS)) {
      const bytes = Buffer.from(corpus);
      const { url } = await startFaultServer(async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (let at = 0; at < bytes.length; at += 7) {
          await new Promise<void>((resolve) => response.write(bytes.subarray(at, at + 7), () => resolve()));
        }
        response.end();
      });
      expect(await readAnswer(connect(url), request, open)).toMatchObject({ text: TEXT, error: undefined });
    }
  });
});

describe("the statistics of a stream", () => {
  test("the statistics contain id, model, characters, finish reason and usage", () => {
    const { decoder } = createDecoder();
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const call = { tool_calls: [{ index: 0, id: "c", function: { name: "look", arguments: '{"a":1}' } }] };
    decoder.feed(ROLE);
    expect(decoder.tally).toMatchObject({ opened: true, answered: false });
    decoder.feed(words("12345") + event(chunk({ delta: call })) + FINISH + event({ choices: [], usage }));
    expect(decoder.tally).toMatchObject({
      id: "chatcmpl-7",
      model: "answering-model",
      chars: 12,
      answered: true,
      finishReason: "stop",
      usage,
    });
  });

  test("comments, pings and empty events do not count as part of the answer", () => {
    const { decoder } = createDecoder();
    decoder.feed(': keepalive\n\ndata:\n\ndata: \n\nevent: ping\n\ndata: {"type":"ping"}\n\ndata: {"choices":[]}\n\n');
    expect(decoder.tally).toMatchObject({ signs: 0, malformed: 0 });
  });
});

test("the client reads nothing after a failure", () => {
  const { decoder, chunks } = createDecoder();
  decoder.feed(words("a") + event({ error: "x" }) + words("b"));
  decoder.feed(words("c"));
  decoder.end();
  expect(chunks).toHaveLength(1);
  expect(decoder.failure()).toMatchObject({ kind: "interrupted" });
});

async function read(answer: Answer, limits = {}): Promise<Reading> {
  const { url } = await startFaultServer(answer);
  return readAnswer(connect(url, { limits: { attempts: 1, ...limits } }), request, open);
}

describe("the truncation of an answer", () => {
  test.each(["odd", "content", "images"])(
    "the client truncates an answer whose events without text are endless: %s",
    async (field) => {
      const base64 = `data:image/png;base64,${"A".repeat(800)}`;
      const more = event(chunk({ delta: { [field]: field === "images" ? [base64] : base64 } }));
      const { error } = await read(events(words("Hel"), ...Array.from({ length: 9 }, () => more)), {
        maxEventBytes: 1_000,
      });
      expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("4000 characters") });
    },
  );

  test("the client truncates an answer that is longer than the limit", async () => {
    const { text, error } = await read(events(words("12345"), words("67890"), words("x"), DONE), {
      maxAnswerChars: 10,
    });
    expect(text).toBe("1234567890");
    expect(error).toMatchObject({ kind: "interrupted", message: expect.stringContaining("10 characters") });
  });
});

describe("a broken event", () => {
  test("the client drops a broken event and counts it in the log, and the answer continues", async () => {
    const { url } = await startFaultServer(events(words("Hel"), "data: {broken\n\n", words("lo"), FINISH, DONE));
    const { log, lines } = recordingLog();
    const { text, error } = await readAnswer(connect(url, { log }), request, open);
    expect({ text, error }).toEqual({ text: "Hello", error: undefined });
    expect(lines).toMatchObject([{ droppedEvents: 1 }]);
  });

  test("the client accepts a broken event three times, and ends the answer at the fourth", async () => {
    const three = ["data: 1\n\n", 'data: "text"\n\n', 'data: {"choices":[7]}\n\n'];
    expect((await read(events(words("a"), ...three, words("b"), DONE))).error).toBeUndefined();
    const { text, error } = await read(events(words("a"), ...three, "data: {\n\n", words("b"), DONE));
    expect(text).toBe("a");
    expect(error).toMatchObject({ kind: "interrupted" });
  });

  test("the client never quotes a broken event in an error or in the log", async () => {
    const { url } = await startFaultServer(events(words("a"), "data: {canary-text\n\n".repeat(4)));
    const { log, lines } = recordingLog();
    const { error } = await readAnswer(connect(url, { log }), request, open);
    expect(`${String(error)} ${String((error as Error).cause)} ${JSON.stringify(lines)}`).not.toContain("canary-text");
  });
});

describe("a complete answer", () => {
  test("an answer is complete if white space comes before the JSON", async () => {
    const choices = [{ message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }];
    const answer = body(200, "application/json", ` \n\n ${JSON.stringify({ choices })}`);
    expect(await read(answer)).toMatchObject({ text: "Hello", error: undefined });
  });

  test("an answer is complete with another content type, or after blank lines and a byte order mark", async () => {
    const text = `\uFEFF\r\n\n${stream("Hello")}`;
    for (const type of ["text/plain", "application/json", "text/html"]) {
      expect(await read(body(200, type, text))).toMatchObject({ text: "Hello", error: undefined });
    }
  });
});

describe("a malformed answer", () => {
  test.each<[string, Answer, string]>([
    ["a web page", body(200, "text/html", "<!doctype html><title>Welcome</title>"), "web page"],
    ["empty", body(200, "text/event-stream", ""), "empty"],
    ["[DONE] without any choice", events(DONE), "empty"],
    ["JSON but not a completion", json(200, { hello: "world" }), ""],
    ["not HTTP", (response) => response.socket?.end("SSH-2.0-OpenSSH_9.6\r\n"), "not HTTP"],
  ])("an answer is malformed if it is %s", async (_, answer, words) => {
    const { error } = await read(answer);
    expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining(words) });
  });
});

test("a whole answer to a streaming request is only read up to the size limit", async () => {
  const { url } = await startFaultServer(json(200, { choices: [{ message: { content: "x".repeat(5_000) } }] }));
  const { error } = await readAnswer(connect(url, { limits: { maxBodyBytes: 1_000 } }), request, open);
  expect(error).toMatchObject({ kind: "malformed", message: expect.stringContaining("1000 characters") });
});
