import { array, assert, constantFrom, nat, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { createSafeText } from "../../src/gateway/safe-text.ts";
import { createStreamDecoder } from "../../src/gateway/stream-decoder.ts";
import {
  chunk,
  cut,
  DONE,
  event,
  events,
  FINISH,
  json,
  ROLE,
  startFaultServer,
  words,
} from "../support/fault-server.ts";
import { connect, open, readAnswer, request } from "../support/gateway-client.ts";

const LIMITS = { maxEventBytes: 10_000, maxAnswerChars: 10_000, maxBodyBytes: 10_000 };

/** The text of an answer, the thoughts before it, and whether the answer had no text. */
function decode(...parts: string[]): { text: string; thought: string; answered: boolean } {
  const chunks: ChatCompletionChunk[] = [];
  const decoder = createStreamDecoder(LIMITS, createSafeText([]), (one) => chunks.push(one));
  for (const part of parts) decoder.feed(part);
  decoder.end();
  const join = (name: "content" | "reasoning") =>
    chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta[name] ?? "")).join("");
  return { text: join("content"), thought: join("reasoning"), answered: decoder.tally.answered };
}

function pieces(text: string, places: readonly number[]): string[] {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  return cuts.slice(1).map((end, index) => words(text.slice(cuts[index], end)));
}

describe("thoughts in tags", () => {
  test("thoughts in tags are not part of the text, whatever the tag and however the deltas split it", () => {
    const tags = constantFrom("think", "thinking", "thought", "reasoning", "THINK");
    assert(
      property(tags, array(nat(), { maxLength: 8 }), (tag, places) => {
        const said = `\n<${tag}>\n2 < 3, so </b> it is\n</${tag}>\n\nIt is <b>three</b>.`;
        expect(decode(ROLE, ...pieces(said, places), FINISH, DONE)).toEqual({
          text: "It is <b>three</b>.",
          thought: "\n2 < 3, so </b> it is\n",
          answered: true,
        });
      }),
    );
  });

  test("thoughts can come in several blocks before the answer", () => {
    const said = "<think></think> <think>once</think>\n<thinking>twice</thinking>Yes.";
    for (let at = 0; at < said.length; at += 1) {
      expect(decode(...pieces(said, [at]), FINISH)).toMatchObject({ text: "Yes.", thought: "oncetwice" });
    }
  });

  test("an answer whose thoughts never end consists of thoughts only", () => {
    expect(decode(words("<think>I wonder <"), words("whether"), FINISH, DONE)).toEqual({
      text: "",
      thought: "I wonder <whether",
      answered: false,
    });
  });

  test("thoughts end only with the closing tag of their own kind", () => {
    expect(decode(words("<think>a </thinking> b</think>c"), FINISH)).toMatchObject({
      text: "c",
      thought: "a </thinking> b",
    });
  });
});

describe("an answer's text", () => {
  test("text that does not start with a thinking tag is unchanged", () => {
    assert(
      property(string({ unit: "grapheme" }), array(nat(), { maxLength: 5 }), (said, places) => {
        if (/^\s*<(think|thinking|thought|reasoning)>/i.test(said)) return;
        expect(decode(...pieces(said, places), FINISH, DONE)).toMatchObject({ text: said, thought: "" });
      }),
    );
  });

  test("text can mention thinking tags", () => {
    for (const said of ["`<think>` opens it", "The <think>tag</think>", "no opening</think>yes", "<thinker>"]) {
      expect(decode(words(said), FINISH)).toMatchObject({ text: said, thought: "" });
    }
  });

  test("the client shows text that could become a tag at the end, at [DONE], or before a call", () => {
    const call = { tool_calls: [{ index: 0, id: "c", function: { name: "look", arguments: "{}" } }] };
    expect(decode(words(" <thi"), FINISH)).toMatchObject({ text: " <thi", answered: true });
    expect(decode(words(" <thi"), DONE)).toMatchObject({ text: " <thi", answered: true });
    expect(decode(words(" <thi"), event(chunk({ delta: call })))).toMatchObject({ text: " <thi" });
  });

  test("the client stops waiting for a thinking tag after a limited amount of white space", () => {
    expect(decode(words(" ".repeat(100)))).toMatchObject({ text: " ".repeat(100) });
  });
});

test("the client reports thoughts once, under any field name, and counts hidden ones as a sign of life", () => {
  const dialects: Array<[Record<string, unknown>, string]> = [
    [{ reasoning_content: "hmm", content: null }, "hmm"],
    [{ reasoning: "hmm", reasoning_details: [{ type: "reasoning.text", text: "hmm" }] }, "hmm"],
    [{ reasoning_details: [{ type: "reasoning.summary", summary: "hmm" }] }, "hmm"],
    [{ content: [{ type: "thinking", thinking: [{ type: "text", text: "hmm" }] }] }, "hmm"],
    [{ thinking_blocks: [{ type: "thinking", thinking: "hmm", signature: "x" }] }, "hmm"],
  ];
  for (const [delta, thought] of dialects) {
    expect(decode(event(chunk({ delta })), words("Hello"), FINISH)).toMatchObject({ text: "Hello", thought });
  }
  expect(decode(event(chunk({ delta: { reasoning: null, content: "Hello" } })))).toMatchObject({ thought: "" });
});

test("the client requests an answer again that breaks off during the thoughts in tags", async () => {
  const { url } = await startFaultServer(
    cut(words("<think>let me see"), words(" <")),
    events(words("<think>again</think>"), words("Hello"), FINISH, DONE),
  );
  expect(await readAnswer(connect(url), request, open)).toMatchObject({ text: "Hello", error: undefined });
});

test("the client separates a whole answer from thoughts in tags and in fields", async () => {
  const messages = [
    { role: "assistant", content: "<think>hmm</think>\n\nHello" },
    { role: "assistant", content: "Hello", reasoning_content: "hmm" },
  ];
  for (const message of messages) {
    const { url } = await startFaultServer(json(200, { choices: [{ index: 0, message, finish_reason: "stop" }] }));
    const { text, chunks } = await readAnswer(connect(url), request, open);
    expect({ text, thought: chunks[0]?.choices[0]?.delta.reasoning }).toEqual({ text: "Hello", thought: "hmm" });
  }
});

test("the client truncates endless thoughts at the limit for answers", () => {
  const decoder = createStreamDecoder({ ...LIMITS, maxAnswerChars: 20 }, createSafeText([]), () => {});
  decoder.feed(words("<think>0123456789") + words("0123456789") + words("0123456789"));
  expect(decoder.failure()).toMatchObject({ kind: "interrupted" });
});
