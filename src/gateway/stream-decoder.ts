import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { createAnswerText } from "./answer-text.ts";
import { createReadChunk, createRepeatReader } from "./chunk-reader.ts";
import type { ChatCompletionChunk, TokenUsage } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { hasError, toStreamError } from "./failures.ts";
import { parseJson } from "./json.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";

const LINE_FEED = 10;
/** More broken events than this, and the stream is not worth believing. */
const MAX_MALFORMED = 3;

/** The facts about an answer that are logged and that decide if it is whole. Never its text. */
export interface Tally {
  id: string;
  model: string;
  /** Characters of text and of tool arguments. */
  chars: number;
  /** Characters of what the model thought before. */
  reasoningChars: number;
  /** Text, a picture or a tool call has come: the answer cannot be started again. */
  answered: boolean;
  /** A choice has come, whatever was in it. */
  opened: boolean;
  finishReason: string | undefined;
  /** Chunks with a reason. */
  reasons: number;
  /** The latest chunk gave a reason and nothing else: only usage and `[DONE]` can follow. */
  isFinished: boolean;
  usage: TokenUsage | undefined;
  /** Chunks with text, a tool call or reasoning: comments and empty deltas are no sign that the answer goes on. */
  signs: number;
  /** Broken events that were dropped. */
  malformed: number;
}

export type OnChunk = (chunk: ChatCompletionChunk) => void;

/** Turns the text of an answer into chunks. Pure: the same text, however it is cut, gives the same answer. */
export interface StreamDecoder {
  readonly tally: Readonly<Tally>;
  /** Hands over the chunks that the text completes. After `done` or `failure` there are no more. */
  feed(text: string): void;
  /** Hands over the chunks that the end of the answer completes: a last event need not have its blank line. */
  end(): void;
  /** Hands over the text that waits for more, if nothing more comes. */
  rest(): void;
  /** `[DONE]` has come. */
  isDone(): boolean;
  /** Why the stream is over before its end; chunks that were handed over before are still valid. */
  failure(): GatewayError | undefined;
}

type DecoderLimits = Pick<GatewayLimits, "maxEventBytes" | "maxAnswerChars" | "maxBodyBytes">;

/**
 * Decodes the answer to a streaming request: events, or one JSON document, told apart by the first character. `from`
 * names the route that answers, see `Attached`.
 */
export function createStreamDecoder(limits: DecoderLimits, safe: SafeText, onChunk: OnChunk, from = ""): StreamDecoder {
  const { maxEventBytes, maxAnswerChars, maxBodyBytes } = limits;
  const tally = createTally();
  const readChunk = createReadChunk(from);
  const repeats = createRepeatReader();
  const text = createAnswerText();
  let done = false;
  let failure: GatewayError | undefined;
  /** Nothing of a line or of an event waits in the parser for what comes next. */
  let isBetween = false;
  /** The text of an answer that is no stream; undefined until the first character came, and for a stream. */
  let whole: string[] | undefined;
  let isOpen = false;

  function takeEvent(event: string | undefined, data: string): void {
    if (done || failure !== undefined || data === "") return;
    done = data.startsWith("[DONE]");
    if (done) return;
    if (data.length > maxEventBytes) return fail(toGiantError(maxEventBytes));
    const repeated = event === undefined ? repeats.read(data) : undefined;
    if (repeated !== undefined) return takeChunk(repeated);
    const value = parseJson(data);
    // Without blank lines between them, events become the lines of one.
    if (value === undefined && data.includes("\n")) return data.split("\n").forEach((line) => takeEvent(event, line));
    if (event === "error" || hasError(value)) {
      return fail(toStreamError(value, safe, tally.answered || tally.reasoningChars > 0));
    }
    const chunk = readChunk(value);
    if (chunk !== undefined) {
      repeats.note(data, chunk);
      return takeChunk(chunk);
    }
    tally.malformed += 1;
    if (tally.malformed > MAX_MALFORMED) fail(toGarbageError());
  }

  function takeChunk(chunk: ChatCompletionChunk): void {
    for (const choice of chunk.choices) text.apply(choice);
    hand(chunk);
  }

  function hand(chunk: ChatCompletionChunk): void {
    count(tally, chunk);
    if (Math.max(tally.chars, tally.reasoningChars) > maxAnswerChars) fail(toLengthError(maxAnswerChars));
    else onChunk(chunk);
  }

  function takeRest(): void {
    const { content, pictures } = text.rest();
    if (content === "" && pictures.length === 0) return;
    const choices = [{ index: 0, delta: { content, ...(pictures.length > 0 && { pictures }) }, finish_reason: null }];
    hand({ id: tally.id, object: "chat.completion.chunk", created: 0, model: tally.model, choices });
  }

  function fail(error: GatewayError): void {
    failure ??= error;
  }

  const parser = createParser({
    maxBufferSize: maxEventBytes,
    onEvent: ({ event, data }) => takeEvent(event, data),
    onError({ type }) {
      if (type === "max-buffer-size-exceeded") fail(toGiantError(maxEventBytes));
    },
  });

  function feedEvents(text: string): void {
    const rest = isBetween ? takePlainEvents(text, takeEvent) : text;
    if (rest === "") return;
    parser.feed(rest);
    isBetween = rest.endsWith("\n\n");
  }

  let wholeChars = 0;
  function collect(text: string): void {
    whole?.push(text);
    wholeChars += text.length;
    if (wholeChars > maxBodyBytes) {
      fail(new GatewayError("malformed", `The gateway's answer is larger than ${maxBodyBytes} characters.`));
    }
  }

  function takeWhole(json: string): void {
    if (json.startsWith("<")) return fail(toPageError());
    const parsed = parseJson(json);
    const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
    if (hasError(value)) return fail(toStreamError(value, safe));
    const chunk = readChunk(value);
    if (chunk === undefined || chunk.choices.length === 0) return fail(toNoAnswerError());
    // A whole answer need not say why it ended.
    for (const choice of chunk.choices) choice.finish_reason ??= "stop";
    takeChunk(chunk);
  }

  return {
    tally,
    feed(text) {
      if (done || failure !== undefined) return;
      if (isOpen) return whole === undefined ? feedEvents(text) : collect(text);
      const first = text.trimStart();
      if (first === "") return;
      isOpen = true;
      if (/^[{[<]/.test(first)) {
        whole = [];
        collect(first);
      } else feedEvents(first);
    },
    end() {
      if (failure !== undefined) return;
      if (whole !== undefined) takeWhole(whole.join("").trim());
      // A line that was cut is broken JSON and is dropped; one that is whole is an event.
      else if (!done) feedEvents("\n\n");
      takeRest();
    },
    rest: takeRest,
    isDone: () => done,
    failure: () => failure,
  };
}

const DATA = "data: ";

/** Takes single-line events without the parser, which would cost a tenth of a chunk; returns the rest for it. */
function takePlainEvents(text: string, take: (event: undefined, data: string) => void): string {
  // A carriage return ends a line as well, and is nothing that gateways write.
  if (text.includes("\r")) return text;
  let from = 0;
  while (text.startsWith(DATA, from)) {
    const to = text.indexOf("\n", from);
    if (to === -1 || text.charCodeAt(to + 1) !== LINE_FEED) break;
    take(undefined, text.slice(from + DATA.length, to));
    from = to + 2;
  }
  return from === 0 ? text : text.slice(from);
}

function toGarbageError(): GatewayError {
  return new GatewayError("interrupted", "The gateway sent too many events that are no JSON chunks.");
}

function toLengthError(maxChars: number): GatewayError {
  return new GatewayError("interrupted", `The answer is longer than ${maxChars} characters and was truncated there.`);
}

function toGiantError(maxBytes: number): GatewayError {
  return new GatewayError("interrupted", `The gateway sent an event of more than ${maxBytes} characters.`);
}

function toNoAnswerError(): GatewayError {
  return new GatewayError("malformed", "The gateway's answer is not a chat completion: it has no readable choices.");
}

/** A page where an answer should be comes from something else than a gateway. */
function toPageError(): GatewayError {
  return new GatewayError(
    "malformed",
    "The gateway answered with a web page instead of an answer: check that its base address is right.",
  );
}

function createTally(): Tally {
  return {
    id: "",
    model: "",
    chars: 0,
    reasoningChars: 0,
    answered: false,
    opened: false,
    finishReason: undefined,
    reasons: 0,
    isFinished: false,
    usage: undefined,
    signs: 0,
    malformed: 0,
  };
}

function count(tally: Tally, chunk: ChatCompletionChunk): void {
  if (tally.id === "" && typeof chunk.id === "string") tally.id = chunk.id;
  if (tally.model === "" && typeof chunk.model === "string") tally.model = chunk.model;
  if (chunk.usage) tally.usage = chunk.usage;
  for (const { index, delta, finish_reason } of chunk.choices) {
    tally.opened = true;
    const { content, reasoning, tool_calls: calls, pictures } = delta;
    if (content) tally.chars += content.length;
    if (reasoning) tally.reasoningChars += reasoning.length;
    if (calls !== undefined) for (const call of calls) tally.chars += call.function?.arguments?.length ?? 0;
    const hasAnswer = Boolean(content) || (calls !== undefined && calls.length > 0) || pictures !== undefined;
    if (hasAnswer) tally.answered = true;
    if (hasAnswer || reasoning !== undefined) tally.signs += 1;
    if (index !== 0) continue;
    if (finish_reason) {
      tally.finishReason = finish_reason;
      tally.reasons += 1;
    }
    tally.isFinished = Boolean(finish_reason) && !hasAnswer && (tally.answered || finish_reason !== "stop");
  }
}

const FIRST_NON_ASCII = 0x80;

/** Turns bytes into text, whatever places they are cut at. */
type DecodeUtf8 = (bytes: Buffer) => string;

/** Keeps a character cut in two for the next bytes; whole events are read in place, in half the time. */
export function createUtf8Decoder(): DecodeUtf8 {
  const decoder = new StringDecoder("utf8");
  /** The last byte was a character of its own, so that nothing is kept. */
  let isClear = true;

  return (bytes) => {
    const wasClear = isClear;
    if (bytes.length > 0) isClear = (bytes[bytes.length - 1] ?? 0) < FIRST_NON_ASCII;
    return wasClear && isClear ? bytes.toString("utf8") : decoder.write(bytes);
  };
}
