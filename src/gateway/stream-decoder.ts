import { createParser } from "eventsource-parser";
import { createAnswerText } from "./answer-text.ts";
import { createReadChunk, createRepeatReader } from "./chunk-reader.ts";
import type { ChatCompletionChunk, TokenUsage } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { hasError, toStreamError } from "./failures.ts";
import { parseJson } from "./json.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";

/** The limit for a whole answer, including its images and attached fields, as a multiple of the largest event. */
const MAX_EVENT_SIZES = 4;
/** A stream fails after more broken events than this. */
const MAX_MALFORMED = 3;

/** Facts about an answer for the log, without the answer's text. They also show whether the answer is complete. */
export interface Tally {
  id: string;
  model: string;
  /** The number of characters in text and tool arguments. */
  chars: number;
  reasoningChars: number;
  /** True once text, an image or a tool call has arrived, so Palaver cannot restart the answer. */
  answered: boolean;
  /** True once a choice has arrived, even an empty one. */
  opened: boolean;
  finishReason: string | undefined;
  reasons: number;
  /** True if the latest chunk contained only a finish reason, so only usage and `[DONE]` can follow. */
  isFinished: boolean;
  usage: TokenUsage | undefined;
  /** The number of chunks with text, a tool call or reasoning. Other chunks are no sign that the answer continues. */
  signs: number;
  malformed: number;
}

export type OnChunk = (chunk: ChatCompletionChunk) => void;

export type StreamDecoder = ReturnType<typeof createStreamDecoder>;

type DecoderLimits = Pick<GatewayLimits, "maxEventBytes" | "maxAnswerChars" | "maxBodyBytes">;

/**
 * Turns the response to a streaming request into chunks. Its first character shows whether it contains events or one
 * JSON document. `from` names the route that answers (see `Attached`). Pure: the result does not depend on how the text
 * is split.
 */
export function createStreamDecoder(limits: DecoderLimits, safe: SafeText, onChunk: OnChunk, from = "") {
  const output = createOutput(limits.maxAnswerChars, onChunk);
  const events = createEventReader(limits.maxEventBytes, safe, output, from);
  const { maxBodyBytes } = limits;
  /** The text of a response that is not a stream. Undefined before the first character, and for a stream. */
  let whole: string[] | undefined;
  let wholeChars = 0;
  let isOpen = false;

  function feed(text: string): void {
    if (whole === undefined) return events.feed(text);
    whole.push(text);
    wholeChars += text.length;
    if (wholeChars <= maxBodyBytes) return;
    output.fail(new GatewayError("malformed", `The gateway's response is larger than ${maxBodyBytes} characters.`));
  }

  return {
    tally: output.tally,
    /** Passes on the chunks that this text completes; none after `isDone` or `failure`. */
    feed(text: string): void {
      if (events.isDone() || output.failure() !== undefined) return;
      const rest = isOpen ? text : text.trimStart();
      if (rest === "") return;
      if (!isOpen && /^[{[<]/.test(rest)) whole = [];
      isOpen = true;
      feed(rest);
    },
    /** Passes on the chunks that are complete only now, because the last event lacks its blank line. */
    end(): void {
      if (output.failure() !== undefined) return;
      if (whole !== undefined) readDocument(whole.join("").trim(), safe, output, from);
      // A complete last line is an event. A truncated line is broken JSON, which the decoder drops.
      else if (!events.isDone()) events.feed("\n\n");
      output.rest();
    },
    /** Passes on the text that was kept back. Call it when no more text follows. */
    rest: output.rest,
    isDone: events.isDone,
    /** Returns why the stream ended early. The chunks that were passed on stay valid. */
    failure: output.failure,
  };
}

type Output = ReturnType<typeof createOutput>;

/** Cleans the text of one answer's chunks and passes them on. */
function createOutput(maxChars: number, onChunk: OnChunk) {
  const tally: Tally = {
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
  const text = createAnswerText();
  let failure: GatewayError | undefined;

  function fail(error: GatewayError): void {
    failure ??= error;
  }

  function hand(chunk: ChatCompletionChunk): void {
    count(tally, chunk);
    if (Math.max(tally.chars, tally.reasoningChars) > maxChars)
      fail(
        new GatewayError("interrupted", `The answer is longer than ${maxChars} characters and was truncated there.`),
      );
    else onChunk(chunk);
  }

  return {
    tally,
    take(chunk: ChatCompletionChunk): void {
      for (const choice of chunk.choices) text.apply(choice);
      hand(chunk);
    },
    rest(): void {
      const { content, pictures } = text.rest();
      if (content === "" && pictures.length === 0) return;
      const choices = [{ index: 0, delta: { content, ...(pictures.length > 0 && { pictures }) }, finish_reason: null }];
      hand({ id: tally.id, model: tally.model, choices });
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

  const failAsGiant = () =>
    output.fail(new GatewayError("interrupted", `The gateway sent an event of more than ${maxBytes} characters.`));

  function takeEvent(event: string | undefined, data: string): void {
    if (done || output.failure() !== undefined || data === "") return;
    done = data.startsWith("[DONE]");
    if (done) return;
    if (data.length > maxBytes) return failAsGiant();
    receivedChars += data.length;
    if (receivedChars > MAX_EVENT_SIZES * maxBytes) {
      const words = `The answer is longer than ${MAX_EVENT_SIZES * maxBytes} characters and was truncated there.`;
      return output.fail(new GatewayError("interrupted", words));
    }
    const repeated = event === undefined ? repeats.read(data) : undefined;
    if (repeated !== undefined) return output.take(repeated);
    const value = parseJson(data);
    // If a server leaves out the blank lines, several events arrive as the lines of one event.
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
    if (tally.malformed <= MAX_MALFORMED) return;
    output.fail(new GatewayError("interrupted", "The gateway sent too many events that aren't JSON chunks."));
  }

  const parser = createParser({
    maxBufferSize: maxBytes,
    onEvent: ({ event, data }) => takeEvent(event, data),
    onError({ type }) {
      if (type === "max-buffer-size-exceeded") failAsGiant();
    },
  });

  return {
    feed: parser.feed,
    isDone: () => done,
  };
}

function readDocument(json: string, safe: SafeText, output: Output, from: string): void {
  const fail = (message: string) => output.fail(new GatewayError("malformed", message));
  if (json.startsWith("<")) {
    return fail("The gateway responded with a web page: check that its base address is right.");
  }
  const parsed = parseJson(json);
  const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (hasError(value)) return output.fail(toStreamError(value, safe));
  const chunk = createReadChunk(from)(value);
  if (chunk === undefined || chunk.choices.length === 0) {
    return fail("The gateway's response is not a chat completion: it has no readable choices.");
  }
  // A complete answer can lack its finish reason.
  for (const choice of chunk.choices) choice.finish_reason ??= "stop";
  output.take(chunk);
}

function count(tally: Tally, chunk: ChatCompletionChunk): void {
  if (tally.id === "") tally.id = chunk.id;
  if (tally.model === "") tally.model = chunk.model;
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
