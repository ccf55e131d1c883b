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
/** Longest answer with its pictures and with all that is attached to it, in longest events. */
const MAX_EVENT_SIZES = 4;
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
  const output = createOutput(limits.maxAnswerChars, onChunk);
  const events = createEventReader(limits.maxEventBytes, safe, output, from);
  const { maxBodyBytes } = limits;
  /** The text of an answer that is no stream; undefined until the first character came, and for a stream. */
  let whole: string[] | undefined;
  let wholeChars = 0;
  let isOpen = false;

  function collect(text: string): void {
    whole?.push(text);
    wholeChars += text.length;
    if (wholeChars > maxBodyBytes) {
      output.fail(new GatewayError("malformed", `The gateway's answer is larger than ${maxBodyBytes} characters.`));
    }
  }

  function feed(text: string): void {
    if (whole === undefined) events.feed(text);
    else collect(text);
  }

  return {
    tally: output.tally,
    feed(text) {
      if (events.isDone() || output.failure() !== undefined) return;
      const rest = isOpen ? text : text.trimStart();
      if (rest === "") return;
      if (!isOpen && /^[{[<]/.test(rest)) whole = [];
      isOpen = true;
      feed(rest);
    },
    end() {
      if (output.failure() !== undefined) return;
      if (whole !== undefined) readDocument(whole.join("").trim(), safe, output, from);
      // A line that was cut is broken JSON and is dropped; one that is whole is an event.
      else if (!events.isDone()) events.feed("\n\n");
      output.rest();
    },
    rest: output.rest,
    isDone: events.isDone,
    failure: output.failure,
  };
}

/** Takes the chunks of one answer, and hands them over with their text cleaned. */
interface Output {
  readonly tally: Tally;
  take(chunk: ChatCompletionChunk): void;
  rest(): void;
  fail(error: GatewayError): void;
  failure(): GatewayError | undefined;
}

function createOutput(maxChars: number, onChunk: OnChunk): Output {
  const tally = createTally();
  const text = createAnswerText();
  let failure: GatewayError | undefined;

  function fail(error: GatewayError): void {
    failure ??= error;
  }

  function hand(chunk: ChatCompletionChunk): void {
    count(tally, chunk);
    if (Math.max(tally.chars, tally.reasoningChars) > maxChars) fail(toLengthError(maxChars));
    else onChunk(chunk);
  }

  return {
    tally,
    take(chunk) {
      for (const choice of chunk.choices) text.apply(choice);
      hand(chunk);
    },
    rest() {
      const { content, pictures } = text.rest();
      if (content === "" && pictures.length === 0) return;
      const choices = [{ index: 0, delta: { content, ...(pictures.length > 0 && { pictures }) }, finish_reason: null }];
      hand({ id: tally.id, object: "chat.completion.chunk", created: 0, model: tally.model, choices });
    },
    fail,
    failure: () => failure,
  };
}

function createEventReader(maxBytes: number, safe: SafeText, output: Output, from: string) {
  const { tally } = output;
  const readChunk = createReadChunk(from);
  const repeats = createRepeatReader();
  let done = false;
  let receivedChars = 0;
  /** Nothing of a line or of an event waits in the parser for what comes next. */
  let isBetween = false;

  function takeEvent(event: string | undefined, data: string): void {
    if (done || output.failure() !== undefined || data === "") return;
    done = data.startsWith("[DONE]");
    if (done) return;
    if (data.length > maxBytes) return output.fail(toGiantError(maxBytes));
    receivedChars += data.length;
    if (receivedChars > MAX_EVENT_SIZES * maxBytes) return output.fail(toLengthError(MAX_EVENT_SIZES * maxBytes));
    const repeated = event === undefined ? repeats.read(data) : undefined;
    if (repeated !== undefined) return output.take(repeated);
    const value = parseJson(data);
    // Without blank lines between them, events become the lines of one.
    if (value === undefined && data.includes("\n")) return data.split("\n").forEach((line) => takeEvent(event, line));
    if (event === "error" || hasError(value)) {
      return output.fail(toStreamError(value, safe, tally.answered || tally.reasoningChars > 0));
    }
    const chunk = readChunk(value);
    if (chunk !== undefined) {
      repeats.note(data, chunk);
      return output.take(chunk);
    }
    tally.malformed += 1;
    if (tally.malformed > MAX_MALFORMED) output.fail(toGarbageError());
  }

  const parser = createParser({
    maxBufferSize: maxBytes,
    onEvent: ({ event, data }) => takeEvent(event, data),
    onError({ type }) {
      if (type === "max-buffer-size-exceeded") output.fail(toGiantError(maxBytes));
    },
  });

  return {
    feed(text: string): void {
      const rest = isBetween ? takePlainEvents(text, takeEvent) : text;
      if (rest === "") return;
      parser.feed(rest);
      isBetween = rest.endsWith("\n\n");
    },
    isDone: () => done,
  };
}

function readDocument(json: string, safe: SafeText, output: Output, from: string): void {
  if (json.startsWith("<")) return output.fail(toPageError());
  const parsed = parseJson(json);
  const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (hasError(value)) return output.fail(toStreamError(value, safe));
  const chunk = createReadChunk(from)(value);
  if (chunk === undefined || chunk.choices.length === 0) return output.fail(toNoAnswerError());
  // A whole answer need not say why it ended.
  for (const choice of chunk.choices) choice.finish_reason ??= "stop";
  output.take(chunk);
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
