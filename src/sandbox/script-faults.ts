import type { ToolCall } from "../gateway/chunks.ts";
import { type Completion, shorten } from "./completion.ts";
import type { Fault, FaultName } from "./faults.ts";
import type { Script, ScriptStep } from "./script.ts";
import { splitPieces } from "./tokens.ts";

type Send = Extract<ScriptStep, { type: "send" }>;

const DONE = "data: [DONE]\n\n";
const LINE_PART = "x".repeat(64 * 1024);
const BROKEN = 'data: {"id":"chatcmpl-broken","choices":[{"delta":\n\n';
const ERROR_EVENT = `data: ${JSON.stringify({
  error: { type: "server_error", code: "internal_error", message: "The model stopped in the middle.", param: null },
})}\n\n`;
const PARTS_PER_MIB = 16;
const MAX_PARTS = 16_384;

const HTML =
  "<!doctype html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";

/** Faults that change what is said rather than how it is sent. */
const SAID: Partial<Record<FaultName, (completion: Completion, argument: number | undefined) => Completion>> = {
  length: (completion, pieces) => shorten(completion, firstPieces(completion.content, pieces), "length"),
  "content-filter": (completion, pieces) =>
    shorten(completion, firstPieces(completion.content, pieces), "content_filter"),
  "broken-arguments": (completion) =>
    spoilCalls(completion, ({ name, arguments: json }) => ({ name, arguments: json.slice(0, json.length / 2) })),
  "unknown-tool": (completion) => spoilCalls(completion, (call) => ({ ...call, name: `${call.name}_unknown` })),
};

export function applyToCompletion(completion: Completion, { name, argument }: Fault): Completion {
  return SAID[name]?.(completion, argument) ?? completion;
}

function firstPieces(content: string, count: number | undefined): string {
  const pieces = splitPieces(content);
  const kept = pieces.slice(0, count ?? halfOf(pieces.length));
  return kept.map((piece) => piece.text).join("");
}

function spoilCalls(completion: Completion, spoil: (call: ToolCall["function"]) => ToolCall["function"]): Completion {
  return {
    ...completion,
    toolCalls: completion.toolCalls.map((call) => ({ ...call, function: spoil(call.function) })),
  };
}

type Change = (script: Script, argument: number | undefined) => Script;

/** Faults of the response as a whole. */
const CHANGES: Partial<Record<FaultName, Change>> = {
  reset: (script) => ({ ...script, steps: [{ type: "cut" }] }),
  "slow-head": (script, seconds = 3) => ({ ...script, steps: [wait(seconds), ...script.steps] }),
  "slow-first-token": (script, seconds = 3) => ({
    ...script,
    steps: [{ type: "head" }, wait(seconds), ...script.steps],
  }),
  html: () => ({ contentType: "text/html; charset=utf-8", steps: [send(HTML)] }),
  empty: (script) => ({ ...script, steps: [{ type: "head" }] }),
  "done-open": (script) => ({ ...script, steps: [...script.steps, { type: "hold", hasKeepAlive: false }] }),
  "no-done": (script) => mapSends(script, (step) => (step.bytes === DONE ? [] : [step])),
  crlf: (script) => mapSends(script, (step) => [{ ...step, bytes: textOf(step).replaceAll("\n", "\r\n") }]),
  bytes: (script) => mapSends(script, splitBytes),
  "usage-missing": (script) => mapSends(script, withoutUsage),
};

/** The behaviour of a response at the place where it breaks. `next` is the event that would have come. */
interface Break {
  next: Send;
  after: ScriptStep[];
  argument: number | undefined;
}

const BREAKS: Partial<Record<FaultName, (at: Break) => ScriptStep[]>> = {
  stall: () => [{ type: "hold", hasKeepAlive: false }],
  "stall-keepalive": () => [{ type: "hold", hasKeepAlive: true }],
  cut: () => [{ type: "cut" }],
  "cut-in-line": ({ next }) => [send(firstHalf(next)), { type: "cut" }],
  "cut-in-character": ({ next }) => [send(cutCharacter(textOf(next))), { type: "cut" }],
  "no-finish": () => [],
  "malformed-chunk": ({ next, after, argument = 1 }) => [
    ...Array.from({ length: argument }, () => send(BROKEN)),
    next,
    ...after,
  ],
  "giant-line": ({ next, after, argument = 64 }) => [
    send('data: {"choices":[{"index":0,"delta":{"content":"'),
    ...Array.from({ length: argument * PARTS_PER_MIB }, () => send(LINE_PART)),
    send('"}}]}\n\n'),
    next,
    ...after,
  ],
  "error-mid-stream": () => [send(ERROR_EVENT)],
};

/** The fixed place of a fault whose argument is a number of something else. */
const PLACES: Partial<Record<FaultName, number | undefined>> = { "giant-line": 1, "malformed-chunk": undefined };

/** Changes a planned response into a faulty one. A script without pieces of text breaks in the middle of its body. */
export function applyToScript(script: Script, { name, argument }: Fault): Script {
  const change = CHANGES[name];
  if (change !== undefined) return change(script, argument);
  const toBreak = BREAKS[name];
  if (toBreak === undefined) return script;
  const { before, next, after } = splitAt(script, name in PLACES ? PLACES[name] : argument);
  return { ...script, steps: [...before, ...toBreak({ next, after, argument })] };
}

/** Parts a script after `pieces` pieces of text, by default half of them; a script in one piece, in its half. */
function splitAt(
  { steps }: Script,
  pieces: number | undefined,
): { before: ScriptStep[]; next: Send; after: ScriptStep[] } {
  const places = steps.flatMap((step, index) => (isSend(step) && step.tokens > 0 ? [index] : []));
  const place = places[Math.min(pieces ?? halfOf(places.length), places.length - 1)];
  const next = place === undefined ? undefined : steps[place];
  if (place !== undefined && next?.type === "send") {
    return { before: steps.slice(0, place), next, after: steps.slice(place + 1) };
  }
  const whole = Buffer.from(steps.filter(isSend).map(textOf).join(""));
  const middle = Math.floor(whole.length / 2);
  const before: ScriptStep[] = [
    ...steps.filter((step) => !isSend(step)),
    { type: "head" },
    send(whole.subarray(0, middle)),
  ];
  return { before, next: send(whole.subarray(middle)), after: [] };
}

/** At least one piece is seen before something breaks, and at most 20, so that nobody waits long for it. */
function halfOf(count: number): number {
  return Math.min(20, Math.max(1, Math.floor(count / 2)));
}

/** The event up to the first byte of a character that has three. */
function cutCharacter(eventText: string): Uint8Array {
  const at = eventText.indexOf('"content":"') + '"content":"'.length;
  return Buffer.from(`${eventText.slice(0, Math.max(0, at))}語`).subarray(0, -2);
}

function withoutUsage(step: Send): Send[] {
  const [, json] = /^(?:data: )?(\{.*\})\s*$/s.exec(textOf(step)) ?? [];
  if (json === undefined) return [step];
  const { usage: _usage, ...rest } = JSON.parse(json) as { usage?: unknown; choices?: unknown[] };
  // The closing chunk that carries nothing but usage goes as a whole.
  if (rest.choices?.length === 0) return [];
  return [{ ...step, bytes: textOf(step).replace(json, () => JSON.stringify(rest)) }];
}

/** One byte at a time, or as many as keep a large body to `MAX_PARTS`. */
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

function wait(seconds: number): ScriptStep {
  return { type: "wait", forMs: seconds * 1000 };
}

function send(bytes: string | Uint8Array): Send {
  return { type: "send", bytes, tokens: 0 };
}

function isSend(step: ScriptStep): step is Send {
  return step.type === "send";
}

function textOf({ bytes }: Send): string {
  return typeof bytes === "string" ? bytes : Buffer.from(bytes).toString();
}
