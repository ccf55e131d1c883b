/** Faults on request: the failures that people can see. `lab/gateway/faults.ts` has more faults, to test clients. */
import type { IncomingMessage } from "node:http";
import { type Completion, shorten } from "./completion.ts";
import { ApiError, toInvalidRequest, toRateLimited } from "./errors.ts";
import type { Script, ScriptStep } from "./script.ts";
import { splitPieces } from "./tokens.ts";

export type Send = Extract<ScriptStep, { type: "send" }>;

/** A part of an image answer. The interface allows two spellings for an image. */
export type Part =
  | { text: string }
  | { inlineData: { mimeType: string; data: string } }
  | { inline_data: { mime_type: string; data: string } };

/** The effects of a fault. `argument` is the N in `name=N`. */
export interface Effect {
  what: string;
  /** The error to send instead of an answer. */
  refuse?(model: string, argument: number | undefined): ApiError;
  /** Changes an answer's content. */
  say?(completion: Completion, argument: number | undefined): Completion;
  /** Changes how an answer is sent. */
  send?(script: Script, argument: number | undefined): Script;
  /** Changes the parts of an image answer. */
  show?(parts: readonly Part[]): readonly Part[];
  /** True if a streaming request gets the whole completion in one piece. */
  isWhole?: boolean;
}

export type Faults = Readonly<Record<string, Effect>>;

/** The steps of a connection that stays open and sends nothing. */
export const SILENCE: ScriptStep = { type: "wait", forMs: 600_000 };

/** The faults that every sandbox has. An argument is optional; its default is in brackets. */
export const FAULTS: Faults = {
  "401": {
    what: "answers 401, as if the key were unknown",
    refuse: () => toError(401, "authentication_error", "invalid_api_key", "The API key is not known."),
  },
  "403": {
    what: "answers 403, as if the key might not use the model",
    refuse: (model) =>
      toError(403, "permission_error", "model_not_permitted", `This key may not use the model ${model}.`),
  },
  "429": {
    what: "answers 429 with Retry-After of N seconds (2)",
    refuse: (model, seconds = 2) => toRateLimited(model, { "retry-after": String(seconds) }),
  },
  "500": {
    what: "answers 500",
    refuse: () =>
      toError(500, "server_error", "internal_error", "The server had an error while processing the request."),
  },
  "503": {
    what: "answers 503",
    refuse: () => toError(503, "server_error", "overloaded", "The model is overloaded. Try again later."),
  },
  reset: {
    what: "closes the connection before the head of the answer",
    send: (script) => ({ ...script, steps: [{ type: "cut" }] }),
  },
  "slow-head": {
    what: "waits N seconds (3) before the head of the answer",
    send: (script, seconds = 3) => ({ ...script, steps: [{ type: "wait", forMs: seconds * 1000 }, ...script.steps] }),
  },
  stall: breaking("goes silent after N pieces of text and keeps the connection open", () => [SILENCE]),
  cut: breaking("closes the connection after N pieces of text", () => [{ type: "cut" }]),
  length: {
    what: "stops after N pieces of text with finish_reason length",
    say: (completion, pieces) => shorten(completion, firstPieces(completion.content, pieces), "length"),
  },
  "content-filter": {
    what: "stops after N pieces of text with finish_reason content_filter",
    say: (completion, pieces) => shorten(completion, firstPieces(completion.content, pieces), "content_filter"),
  },
  "snake-case": {
    what: "names the picture inline_data (images only)",
    show: (parts) => mapPictures(parts, (data) => [{ inline_data: { mime_type: "image/png", data } }]),
  },
  "no-image": {
    what: "answers without a picture (images only)",
    show: (parts) => mapPictures(parts, () => []),
  },
};

export interface Fault {
  name: string;
  effect: Effect;
  /** The N in `name=N`: seconds, pieces or MiB, as the fault's description says. */
  argument: number | undefined;
  /** True for `503-once`: only the first of two equal requests has the fault. */
  isOnce: boolean;
}

const MAX_ARGUMENT = 600;
const MAX_REMEMBERED = 1000;

/** Reads `name`, `name=N` or `name-once`. Undefined if no fault has the name. */
export function findFault(text: string, faults: Faults): Fault | undefined {
  const [, stem = "", value] = /^([\w-]*)(?:=(\d{1,9}))?$/.exec(text.trim()) ?? [];
  const name = stem.replace(/-once$/, "");
  const effect = Object.hasOwn(faults, name) ? faults[name] : undefined;
  const argument = value === undefined ? undefined : Math.min(Number(value), MAX_ARGUMENT);
  return effect && { name, effect, argument, isOnce: stem !== name };
}

/** The list of faults as Markdown, for a user who asks in the chat. */
export function describeFaults(faults: Faults): string {
  const rows = Object.entries(faults).map(([name, { what }]) => `- \`${name}\` ${what}`);
  return [
    "I can break on purpose, so that you can see what the bot makes of it. Write `sandbox fault: NAME`, `NAME=N` or `NAME-once`:",
    rows.join("\n"),
  ].join("\n\n");
}

/** A model id, and what its suffixes request: `sandbox-chat:stall=5:speed=20`. */
export interface AskedModel {
  id: string;
  fault: Fault | undefined;
  tokensPerSecond: number | undefined;
}

const SPEED = /^speed=(\d{1,6})$/;

/** Reads a model id and its suffixes. A fault in the header `x-sandbox-fault` takes precedence over a suffix. */
export function readAskedModel(
  text: string,
  { headersDistinct }: IncomingMessage,
  param: string | null,
  faults: Faults,
): AskedModel {
  const [id = "", ...suffixes] = text.split(":");
  const speed = suffixes.map((suffix) => SPEED.exec(suffix)?.[1]).find((value) => value !== undefined);
  const header = headersDistinct["x-sandbox-fault"]?.[0] || undefined;
  const asked = header ?? suffixes.find((suffix) => !SPEED.test(suffix));
  const fault = asked === undefined ? undefined : findFault(asked, faults);
  if (asked !== undefined && fault === undefined) {
    const names = Object.keys(faults).join(", ");
    const message = `There is no fault ${JSON.stringify(asked)}. There are: ${names}.`;
    throw toInvalidRequest(message, "unknown_fault", header === undefined ? param : null);
  }
  return { id, fault, tokensPerSecond: speed === undefined ? undefined : Math.max(1, Number(speed)) };
}

/**
 * Throws the fault if it is an error, or else returns it. Returns undefined for the second of two equal requests with a
 * `-once` fault; `met` remembers the first one.
 */
export function meetFault(
  fault: Fault | undefined,
  model: string,
  fingerprint: string,
  met: Set<string>,
): Fault | undefined {
  if (fault === undefined) return undefined;
  if (fault.isOnce) {
    const kind = `${fault.name} ${fingerprint}`;
    // Forget the first request, so that a third one has the fault again and the demonstration can be repeated.
    if (met.delete(kind)) return undefined;
    if (met.size >= MAX_REMEMBERED) met.clear();
    met.add(kind);
  }
  const error = fault.effect.refuse?.(model, fault.argument);
  if (error !== undefined) throw error;
  return fault;
}

/** Makes a fault that breaks an answer after N pieces of text. `toSteps` gets the event that the fault replaces. */
export function breaking(what: string, toSteps: (next: Send) => ScriptStep[]): Effect {
  return { what, send: (script, pieces) => breakAt(script, pieces, toSteps) };
}

function toError(status: number, type: string, code: string, message: string): ApiError {
  return new ApiError(message, { status, type, code });
}

function firstPieces(content: string, count: number | undefined): string {
  const pieces = splitPieces(content);
  const kept = pieces.slice(0, count ?? halfOf(pieces.length));
  return kept.map((piece) => piece.text).join("");
}

/**
 * Replaces everything after `pieces` pieces of text, by default after half of them. `toSteps` gets the replaced events.
 * A script without pieces of text breaks in the middle of its body.
 */
export function breakAt(
  script: Script,
  pieces: number | undefined,
  toSteps: (next: Send, after: ScriptStep[]) => ScriptStep[],
): Script {
  const { steps } = script;
  const places = steps.flatMap((step, index) => (isSend(step) && step.tokens > 0 ? [index] : []));
  const place = places[Math.min(pieces ?? halfOf(places.length), places.length - 1)];
  const next = place === undefined ? undefined : steps[place];
  if (place !== undefined && next?.type === "send") {
    return { ...script, steps: [...steps.slice(0, place), ...toSteps(next, steps.slice(place + 1))] };
  }
  const whole = Buffer.from(steps.filter(isSend).map(textOf).join(""));
  const middle = Math.floor(whole.length / 2);
  const others = steps.filter((step) => !isSend(step));
  const [first, second] = [send(whole.subarray(0, middle)), send(whole.subarray(middle))];
  return { ...script, steps: [...others, { type: "head" }, first, ...toSteps(second, [])] };
}

/** Returns half of the pieces: at least one, so that some text shows, and at most 20, so that the break comes soon. */
function halfOf(count: number): number {
  return Math.min(20, Math.max(1, Math.floor(count / 2)));
}

export function mapPictures(parts: readonly Part[], change: (data: string) => Part[]): Part[] {
  return parts.flatMap((part) => ("inlineData" in part ? change(part.inlineData.data) : [part]));
}

export function isSend(step: ScriptStep): step is Send {
  return step.type === "send";
}

/** Plans a write that ignores the model's speed. */
export function send(bytes: string | Uint8Array): Send {
  return { type: "send", bytes, tokens: 0 };
}

export function textOf({ bytes }: Send): string {
  return typeof bytes === "string" ? bytes : Buffer.from(bytes).toString();
}
