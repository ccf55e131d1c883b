import { setApart } from "./attached.ts";
import type { ChatCompletionChunk, ChunkChoice, TokenUsage } from "./chunks.ts";
import { readCitations } from "./citations.ts";
import { isJson, isRecord } from "./json.ts";

/** The fields of a delta or message that Palaver reads, and fields that say nothing about the answer. */
const DELTA_FIELDS: ReadonlySet<string> = new Set([
  "role",
  "content",
  "tool_calls",
  "refusal",
  "name",
  "function_call",
  "images",
  "audio",
  "annotations",
  "citations",
]);
/** The limit for a call's name and id. Some gateways put a signature into the id. */
const MAX_NAME_CHARS = 1_000;
const MAX_ID_CHARS = 65_536;
const CALL_FIELDS: ReadonlySet<string> = new Set(["index", "id", "type", "function"]);

/**
 * Reads the chunks of one answer, or a whole answer as one chunk. Corrects differences between servers, from missing
 * `choices` to arguments that are an object. Changes chunks in place, because there are thousands. `from` is the route
 * that answers (see `Attached`).
 */
export function createReadChunk(from: string) {
  const placeOf = createPlaceOf();
  let hasDeltas = false;

  function fixCall(call: unknown): boolean {
    if (!isRecord(call)) return false;
    if (typeof call.id !== "string" || call.id === "") delete call.id;
    if (!fixFunction(call)) return false;
    setApart(call, CALL_FIELDS, from);
    const { name, arguments: args } = isRecord(call.function) ? call.function : {};
    if (toText(name).length > MAX_NAME_CHARS || toText(call.id).length > MAX_ID_CHARS) return false;
    const place = placeOf({ index: call.index, id: toText(call.id), name: toText(name), args: toText(args) });
    call.index = place;
    return place !== undefined;
  }

  function fixChoice(choice: unknown): choice is ChunkChoice {
    if (!isRecord(choice)) return false;
    if (typeof choice.index !== "number") choice.index = 0;
    if (typeof choice.finish_reason !== "string" || choice.finish_reason === "") choice.finish_reason = null;
    if (isRecord(choice.delta)) hasDeltas = true;
    // Ignore a message after deltas, because it repeats the whole answer.
    const delta = choice.delta ?? (hasDeltas ? undefined : choice.message) ?? {};
    if (!isRecord(delta)) return false;
    const isWhole = delta === choice.message;
    choice.delta = delta;
    setApart(delta, DELTA_FIELDS, from);
    if (typeof delta.content !== "string" && !fixContent(delta)) return false;
    fixPictures(delta);
    fixReasoning(delta);
    const calls = delta.tool_calls;
    if (calls === undefined) return true;
    if (calls === null) return delete delta.tool_calls;
    if (!Array.isArray(calls)) return false;
    if (isWhole) for (const [index, call] of calls.entries()) if (isRecord(call)) call.index ??= index;
    return calls.every(fixCall);
  }

  return (value: unknown): ChatCompletionChunk | undefined => {
    if (!isRecord(value)) return undefined;
    const given: unknown[] = Array.isArray(value.choices) ? value.choices : [];
    // Palaver requests one answer. Text from a second answer would mix with it.
    const choices = given.length > 1 ? given.filter(isFirst) : given;
    value.choices = choices;
    const sources = readCitations(value);
    if (!choices.every(fixChoice)) return undefined;
    const usage = readUsage(value.usage);
    return { id: toText(value.id), model: toText(value.model), choices, sources, usage };
  };
}

const KEY = '"content"';
const PLAIN = /^[^"\\\p{Cc}]+$/u;

/** Reads events that differ from an earlier event only in their text, in half the time of a JSON parser. */
export function createRepeatReader() {
  let before = "";
  let after = "";
  let noted: ChatCompletionChunk | undefined;

  return {
    /** Undefined if the event differs in more than its text, or if the text needs a JSON parser. */
    read(data: string): ChatCompletionChunk | undefined {
      const isLike = data.slice(0, before.length) === before && data.endsWith(after);
      if (noted === undefined || !isLike) return undefined;
      const content = data.slice(before.length, data.length - after.length);
      return PLAIN.test(content) ? toTextChunk(noted, content) : undefined;
    },
    /** Remembers an event and its chunk as the pattern for later events. */
    note(data: string, chunk: ChatCompletionChunk): void {
      const { content, reasoning, tool_calls: calls, pictures, attached } = chunk.choices[0]?.delta ?? {};
      if (!content || (reasoning ?? calls ?? pictures ?? attached) !== undefined || chunk.usage) return;
      const [head = "", tail = "", another] = data.split(KEY, 3);
      const opening = /^\s*:\s*"/.exec(tail)?.[0];
      // If the event has two fields with this name, it is unclear which field counts.
      if (opening === undefined || another !== undefined) return;
      const place = head.length + KEY.length + opening.length;
      if (!PLAIN.test(content) || !data.startsWith(`${content}"`, place)) return;
      before = data.slice(0, place);
      after = data.slice(place + content.length);
      noted = toTextChunk(chunk, content);
    },
  };
}

function toTextChunk({ id, model, choices }: ChatCompletionChunk, content: string): ChatCompletionChunk {
  const { index = 0, finish_reason = null } = choices[0] ?? {};
  return { id, model, choices: [{ index, delta: { content }, finish_reason }] };
}

function isFirst(choice: unknown): boolean {
  return !isRecord(choice) || typeof choice.index !== "number" || choice.index === 0;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Turns a message's content (text, a list of parts or a refusal) into text. Returns false for other content. */
function fixContent(message: Record<string, unknown>): boolean {
  const { content, refusal } = message;
  if (Array.isArray(content)) {
    const others = content.filter((part) => !isTextPart(part));
    const pictures = others.filter((part) => readPicture(part) !== undefined);
    // Ignore parts that are not text: they are the model's thoughts, or cannot be shown.
    message.content = content.map((part) => (isTextPart(part) ? toText(part.text) : "")).join("");
    message.images ??= pictures;
    message.reasoning ??= others.filter((part) => !pictures.includes(part));
    return true;
  }
  if (content !== undefined && content !== null && typeof content !== "string") return false;
  if (!content && typeof refusal === "string" && refusal !== "") message.content = refusal;
  return true;
}

function isTextPart(part: unknown): part is Record<string, unknown> {
  return isRecord(part) && part.type === "text";
}

/** At most this many images of one delta or message are kept. */
const MAX_PICTURES = 16;

function fixPictures(message: Record<string, unknown>): void {
  if (message.pictures !== undefined) delete message.pictures;
  if (!Array.isArray(message.images)) return;
  const pictures = message.images
    .slice(0, MAX_PICTURES)
    .map(readPicture)
    .filter((url) => url !== undefined);
  if (pictures.length > 0) message.pictures = pictures;
}

/** Returns an image's data URL from any of the forms that gateways use. */
function readPicture(part: unknown): string | undefined {
  if (typeof part === "string") return part.startsWith("data:image/") ? part : undefined;
  if (!isRecord(part)) return undefined;
  const { image_url: link, url = link, b64_json: base64, data = base64 } = part;
  if (typeof data === "string" && data !== "") return data.startsWith("data:") ? data : `data:image/png;base64,${data}`;
  const address = isRecord(url) ? url.url : url;
  return typeof address === "string" && address.startsWith("data:image/") ? address : undefined;
}

/** Servers' names for the model's thoughts. Fields that contain only text come first. */
const REASONING_FIELDS = [
  "reasoning_content",
  "reasoning",
  "thinking",
  "reasoning_details",
  "thinking_blocks",
] as const;
/** Parts can contain parts. More deeply nested parts are not searched. */
const MAX_PART_DEPTH = 4;

/**
 * Moves a message's thoughts, whole or a fragment, to `reasoning`, whatever the server calls them. `reasoning` is "" if
 * the server withholds them. The interface does not define thoughts, but servers send them.
 */
function fixReasoning(message: Record<string, unknown>): void {
  let reasoning: string | undefined;
  for (const name of REASONING_FIELDS) {
    const value = message[name];
    const text = textIn(value, MAX_PART_DEPTH);
    if (text !== "") {
      reasoning = text;
      break;
    }
    if (Array.isArray(value) ? value.length > 0 : isRecord(value)) reasoning = "";
  }
  if (reasoning !== undefined) message.reasoning = reasoning;
  else if (message.reasoning !== undefined) delete message.reasoning;
}

function textIn(value: unknown, depth: number): string {
  if (typeof value === "string") return value;
  if (depth === 0) return "";
  if (Array.isArray(value)) return value.map((part) => textIn(part, depth - 1)).join("");
  if (!isRecord(value)) return "";
  return textIn(value.text ?? value.summary ?? value.thinking ?? value.reasoning ?? value.content, depth - 1);
}

const MAX_COST = 1_000_000;

/** Reads token counts under any server's names; undefined if a count is missing. A missing total becomes their sum. */
export function readUsage(value: unknown): TokenUsage | undefined {
  if (!isRecord(value)) return undefined;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: details, cost } = value;
  if (!isCount(prompt_tokens) || !isCount(completion_tokens)) return undefined;
  const total = isCount(total_tokens) ? total_tokens : prompt_tokens + completion_tokens;
  const cached = (isRecord(details) ? details.cached_tokens : undefined) ?? value.prompt_cache_hit_tokens;
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: total,
    ...(isCount(cached) && { cached_tokens: cached }),
    ...(typeof cost === "number" && cost >= 0 && cost <= MAX_COST && { cost }),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Makes the function of a call, whole or a fragment, match the wire types. Returns false if that is impossible. */
function fixFunction(call: Record<string, unknown>): boolean {
  const fn = call.function;
  if (fn === undefined || fn === null) return delete call.function;
  if (!isRecord(fn)) return false;
  if (typeof fn.name !== "string" || fn.name === "") delete fn.name;
  if (isRecord(fn.arguments)) fn.arguments = JSON.stringify(fn.arguments);
  if (fn.arguments === null) delete fn.arguments;
  return fn.arguments === undefined || typeof fn.arguments === "string";
}

/** A higher index must be a mistake or an attack: it would create a list of that length. */
const MAX_TOOL_CALLS = 128;

/** The fields that show which call a fragment belongs to. "" counts as missing. */
export interface CallFragment {
  /** The index as the gateway sent it, not always a number. */
  index: unknown;
  id: string;
  name: string;
  args: string;
}

interface OpenCall {
  place: number;
  id: string;
  name: string;
  args: string;
  /** The last character of `args` that is not white space; "" if `args` has no such character. */
  end: string;
}

/**
 * Finds the position of the call that a fragment belongs to. Without a usable index, a new id starts a new call.
 * Without ids, a name after complete arguments starts a new call. An id that repeats or always changes starts none.
 */
export function createPlaceOf() {
  const calls = new Map<number, OpenCall>();
  const taken = new Set<number>();

  function begin(key: number): OpenCall {
    // A new call gets its index as its position, or the next free position if another call has that index.
    const place = taken.has(key) ? Math.max(...taken) + 1 : key;
    taken.add(place);
    const call = { place, id: "", name: "", args: "", end: "" };
    calls.set(key, call);
    return call;
  }

  /** Undefined if the index is higher than any real one. */
  return (fragment: CallFragment): number | undefined => {
    const index = readIndex(fragment.index);
    const key = index ?? 0;
    if (key < 0 || key >= MAX_TOOL_CALLS) return undefined;
    const open = calls.get(key);
    const call = open === undefined || isAnother(open, fragment, index !== undefined) ? begin(key) : open;
    call.id ||= fragment.id;
    call.name ||= fragment.name;
    call.args += fragment.args;
    call.end = fragment.args.trimEnd().slice(-1) || call.end;
    return call.place < MAX_TOOL_CALLS ? call.place : undefined;
  };
}

/** Some gateways send the index as text. */
function readIndex(index: unknown): number | undefined {
  const number = typeof index === "string" && /^\d{1,9}$/.test(index) ? Number(index) : index;
  return Number.isSafeInteger(number) ? Number(number) : undefined;
}

/** Longer arguments are not checked for completeness: a hostile server could force many parses. */
const MAX_PARSED_CHARS = 32_768;

function isAnother(call: OpenCall, { id, name, args }: CallFragment, hasIndex: boolean): boolean {
  const hasOtherId = id !== "" && call.id !== "" && id !== call.id;
  if (hasOtherId && !hasIndex) return true;
  if (name === "" || (id !== "" && id === call.id)) return false;
  if (call.end === "") return hasOtherId && name !== call.name;
  // Some servers repeat the call's name in every fragment; parsing the arguments each time would take seconds.
  return (hasOtherId || args !== "") && call.end === "}" && call.args.length <= MAX_PARSED_CHARS && isJson(call.args);
}
