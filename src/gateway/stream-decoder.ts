import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { createReadChunk, createRepeatReader } from "./chunk-reader.ts";
import type { ChatCompletion, ChatCompletionChunk, TokenUsage } from "./chunks.ts";
import { parseCompletion, toChunks } from "./completion.ts";
import { GatewayError } from "./errors.ts";
import { hasError, parseJson, toStreamError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import { createThoughtFilter } from "./reasoning.ts";
import type { SafeText } from "./safe-text.ts";

const LINE_FEED = 10;
/** More broken events than this, and the stream is not worth believing. */
const MAX_MALFORMED = 3;

/** The facts about an answer that the log gets and that decide if it is whole. Never its text. */
export interface Tally {
  id: string;
  model: string;
  /** Characters of text and of tool arguments. */
  chars: number;
  /** Characters of what the model thought before. */
  reasoningChars: number;
  /** Text or a tool call has come: the answer cannot be begun again. */
  answered: boolean;
  /** A choice has come, whatever was in it. */
  opened: boolean;
  finishReason: string | undefined;
  usage: TokenUsage | undefined;
  /** Chunks with text, a tool call or reasoning: comments and empty deltas are no sign that the answer goes on. */
  signs: number;
  /** Broken events that were dropped. */
  malformed: number;
}

export type OnChunk = (chunk: ChatCompletionChunk) => void;

/** Turns the text of an event stream into chunks. Pure: the same text, however it is cut, gives the same chunks. */
export interface StreamDecoder {
  readonly tally: Readonly<Tally>;
  /** Hands over the chunks that the text completes. After `done` or `failure` there are no more. */
  feed(text: string): void;
  /** Hands over the chunks that the end of the text completes: a last event need not have its blank line. */
  end(): void;
  /** Counts a chunk that did not come as an event, and hands it over. */
  take(chunk: ChatCompletionChunk): void;
  /** `[DONE]` has come. */
  isDone(): boolean;
  /** Why the stream is over before its end; what was handed over before still stands. */
  failure(): GatewayError | undefined;
}

type DecoderLimits = Pick<GatewayLimits, "maxEventBytes" | "maxAnswerChars">;

export function createStreamDecoder(limits: DecoderLimits, safe: SafeText, onChunk: OnChunk): StreamDecoder {
  const { maxEventBytes, maxAnswerChars } = limits;
  const tally = createTally();
  const readChunk = createReadChunk();
  const repeats = createRepeatReader();
  const thoughts = createThoughtFilter();
  let done = false;
  let failure: GatewayError | undefined;
  /** Nothing of a line or of an event waits in the parser for what comes next. */
  let isBetween = false;

  function takeEvent(event: string | undefined, data: string): void {
    if (done || failure !== undefined || data === "") return;
    done = data.startsWith("[DONE]");
    if (done) return takeRest();
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
    for (const choice of chunk.choices) thoughts.apply(choice);
    hand(chunk);
  }

  function hand(chunk: ChatCompletionChunk): void {
    count(tally, chunk);
    if (Math.max(tally.chars, tally.reasoningChars) > maxAnswerChars) fail(toLengthError(maxAnswerChars));
    else onChunk(chunk);
  }

  /** Text that was kept back, in an answer that ends with `[DONE]` alone. */
  function takeRest(): void {
    const content = thoughts.rest();
    if (content === "") return;
    const choices = [{ index: 0, delta: { content }, finish_reason: null }];
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

  function feed(text: string): void {
    if (done || failure !== undefined) return;
    const rest = isBetween ? takePlainEvents(text, takeEvent) : text;
    if (rest === "") return;
    parser.feed(rest);
    isBetween = rest.endsWith("\n\n");
  }

  return {
    tally,
    feed,
    // A line that was cut is broken JSON and falls away; one that is whole is an event.
    end: () => feed("\n\n"),
    take: takeChunk,
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
  return new GatewayError("interrupted", `The answer is longer than ${maxChars} characters and was cut off there.`);
}

function toGiantError(maxBytes: number): GatewayError {
  return new GatewayError("interrupted", `The gateway sent an event of more than ${maxBytes} characters.`);
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
    const { content, reasoning, tool_calls: calls } = delta;
    if (content) tally.chars += content.length;
    if (reasoning) tally.reasoningChars += reasoning.length;
    if (calls !== undefined) for (const call of calls) tally.chars += call.function?.arguments?.length ?? 0;
    const hasAnswer = Boolean(content) || (calls !== undefined && calls.length > 0);
    if (hasAnswer) tally.answered = true;
    if (hasAnswer || reasoning !== undefined) tally.signs += 1;
    if (index === 0 && finish_reason) tally.finishReason = finish_reason;
  }
}

/** Decodes the answer to a streaming request: events, or one JSON document, told apart by the first character. */
export function createAnswerDecoder(limits: GatewayLimits, safe: SafeText, onChunk: OnChunk): StreamDecoder {
  const events = createStreamDecoder(limits, safe, onChunk);
  const decoder: StreamDecoder = { ...events, feed: begin };
  /** The text of an answer that is no stream. */
  let whole = "";

  function begin(text: string): void {
    const first = text.trimStart();
    if (first === "") return;
    const isStream = !/^[{[<]/.test(first);
    // From here on nothing stands between the events and their decoder: this is where the thousands of chunks go.
    decoder.feed = isStream ? events.feed : collect;
    if (!isStream) decoder.end = finish;
    decoder.feed(first);
  }

  function collect(text: string): void {
    whole += text;
    if (whole.length > limits.maxBodyBytes) {
      fail(new GatewayError("malformed", `The gateway's answer is larger than ${limits.maxBodyBytes} characters.`));
    }
  }

  function finish(): void {
    if (decoder.failure() !== undefined) return;
    const completion = readWhole();
    if (completion !== undefined) for (const chunk of toChunks(completion)) events.take(chunk);
  }

  function readWhole(): ChatCompletion | undefined {
    try {
      return parseCompletion(whole, safe);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      fail(error);
      return undefined;
    }
  }

  function fail(error: GatewayError): void {
    decoder.failure = () => error;
  }
  return decoder;
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
