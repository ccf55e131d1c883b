// Faults of gateways and networks that a client must survive. Pass them to a sandbox as `faults`.
import type { ToolCall } from "../../src/gateway/chunks.ts";
import type { Completion } from "../../src/sandbox/completion.ts";
import { toRateLimited } from "../../src/sandbox/errors.ts";
import {
  breakAt,
  breaking,
  type Faults,
  isSend,
  mapPictures,
  type Send,
  SILENCE,
  send,
  textOf,
} from "../../src/sandbox/faults.ts";
import type { Script, ScriptStep } from "../../src/sandbox/script.ts";

const DONE = "data: [DONE]\n\n";
const LINE_PART = "x".repeat(64 * 1024);
const PARTS_PER_MIB = 16;
const BROKEN = 'data: {"id":"chatcmpl-broken","choices":[{"delta":\n\n';
const ERROR_EVENT = `data: ${JSON.stringify({
  error: { type: "server_error", code: "internal_error", message: "The model stopped in the middle.", param: null },
})}\n\n`;
const HTML =
  "<!doctype html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";
const NO_PICTURE = Buffer.from("<!doctype html><p>This is no picture.</p>").toString("base64");
const KEEP_ALIVE: readonly ScriptStep[] = [{ type: "wait", forMs: 1000 }, send(": keepalive\n\n")];

export const WIRE_FAULTS: Faults = {
  "429-date": {
    what: "answers 429 with Retry-After as a date, N seconds ahead (2)",
    refuse: (model, seconds = 2) => toRateLimited(model, { "retry-after": toHttpDate(seconds) }),
  },
  "429-bare": { what: "answers 429 without Retry-After", refuse: (model) => toRateLimited(model, {}) },
  "slow-first-token": {
    what: "sends the head, then waits N seconds (3) before the first event",
    send: (script, seconds = 3) => ({
      ...script,
      steps: [{ type: "head" }, { type: "wait", forMs: seconds * 1000 }, ...script.steps],
    }),
  },
  html: {
    what: "answers 200 with an HTML page",
    send: () => ({ contentType: "text/html; charset=utf-8", steps: [send(HTML)] }),
  },
  empty: { what: "answers 200 with an empty body", send: (script) => ({ ...script, steps: [{ type: "head" }] }) },
  json: { what: "answers a streaming request with the whole completion as JSON", isWhole: true },
  "stall-keepalive": breaking("like stall, with a keep-alive comment every second", () =>
    Array.from({ length: 600 }, () => KEEP_ALIVE).flat(),
  ),
  "cut-in-line": breaking("like cut, in the middle of a line", (next) => [send(firstHalf(next)), { type: "cut" }]),
  "cut-in-character": breaking("like cut, in the middle of a character", (next) => [
    send(cutCharacter(textOf(next))),
    { type: "cut" },
  ]),
  "no-done": {
    what: "omits [DONE] and ends",
    send: (script) => mapSends(script, (step) => (step.bytes === DONE ? [] : [step])),
  },
  "no-finish": breaking("ends after N pieces of text without finish_reason and [DONE]", () => []),
  "done-open": {
    what: "sends [DONE] and keeps the connection open",
    send: (script) => ({ ...script, steps: [...script.steps, SILENCE] }),
  },
  "malformed-chunk": {
    what: "inserts N (1) events with broken JSON",
    send: (script, count = 1) => {
      const broken = Array.from({ length: count }, () => send(BROKEN));
      return breakAt(script, undefined, (next, after) => [...broken, next, ...after]);
    },
  },
  "giant-line": {
    what: "sends one line of N MiB (64) after the first piece of text",
    send: (script, mebibytes = 64) => {
      const line = Array.from({ length: mebibytes * PARTS_PER_MIB }, () => send(LINE_PART));
      const start = send('data: {"choices":[{"index":0,"delta":{"content":"');
      return breakAt(script, 1, (next, after) => [start, ...line, send('"}}]}\n\n'), next, ...after]);
    },
  },
  "error-mid-stream": breaking("sends an error object after N pieces of text and ends", () => [send(ERROR_EVENT)]),
  crlf: {
    what: "ends lines with CR LF",
    send: (script) => mapSends(script, (step) => [{ ...step, bytes: textOf(step).replaceAll("\n", "\r\n") }]),
  },
  bytes: { what: "sends every byte separately", send: (script) => mapSends(script, splitBytes) },
  "broken-arguments": {
    what: "truncates the arguments of tool calls",
    say: (completion) =>
      spoilCalls(completion, ({ name, arguments: json }) => ({ name, arguments: json.slice(0, json.length / 2) })),
  },
  "unknown-tool": {
    what: "calls tools that the request does not offer",
    say: (completion) => spoilCalls(completion, (call) => ({ ...call, name: `${call.name}_unknown` })),
  },
  "usage-missing": { what: "omits usage", send: (script) => mapSends(script, withoutUsage) },
  "not-an-image": {
    what: "sends bytes that are not an image (images only)",
    show: (parts) => mapPictures(parts, () => [{ inlineData: { mimeType: "image/png", data: NO_PICTURE } }]),
  },
};

/** Rounds up, because a date has whole seconds and the wait must not be too short. */
function toHttpDate(seconds: number): string {
  return new Date(Math.ceil(Date.now() / 1000 + seconds) * 1000).toUTCString();
}

function spoilCalls(completion: Completion, spoil: (call: ToolCall["function"]) => ToolCall["function"]): Completion {
  const toolCalls = completion.toolCalls.map((call) => ({ ...call, function: spoil(call.function) }));
  return { ...completion, toolCalls };
}

/** Returns the event up to the first byte of a three-byte character. */
function cutCharacter(eventText: string): Uint8Array {
  const at = eventText.indexOf('"content":"') + '"content":"'.length;
  return Buffer.from(`${eventText.slice(0, Math.max(0, at))}語`).subarray(0, -2);
}

function withoutUsage(step: Send): Send[] {
  const text = textOf(step);
  // Remove the last chunk, because it contains only usage.
  if (text.includes('"choices":[]')) return [];
  const bytes = text.replace(/\{.*\}/s, (json) =>
    JSON.stringify(JSON.parse(json), (key, value: unknown) => (key === "usage" ? undefined : value)),
  );
  return [{ ...step, bytes }];
}

const MAX_PARTS = 16_384;

/** Splits a body into bytes, or into longer chunks if there would be more than `MAX_PARTS`. */
function splitBytes(step: Send): Send[] {
  const bytes = Buffer.from(step.bytes);
  const size = Math.ceil(bytes.length / MAX_PARTS);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => ({
    ...step,
    bytes: bytes.subarray(index * size, (index + 1) * size),
    tokens: index === 0 ? step.tokens : 0,
  }));
}

function mapSends(script: Script, change: (step: Send) => Send[]): Script {
  return { ...script, steps: script.steps.flatMap((step): ScriptStep[] => (isSend(step) ? change(step) : [step])) };
}

function firstHalf(step: Send): Uint8Array {
  const bytes = Buffer.from(step.bytes);
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}
