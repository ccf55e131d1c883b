import type { ChatCompletionChunk } from "./chunks.ts";
import { parseCompletion, toChunks } from "./completion.ts";
import { GatewayError } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import { createStreamDecoder, type StreamDecoder } from "./stream-decoder.ts";

/**
 * Decodes the answer to a streaming request, which some servers give as one JSON document. What it is shows in
 * its first character, whatever its content type says. Pure.
 */
export function createAnswerDecoder(limits: GatewayLimits, safe: SafeText): StreamDecoder {
  const events = createStreamDecoder(limits, safe);
  let isEvents = false;
  /** All of an answer that is no stream. */
  let whole = "";
  let failure: GatewayError | undefined;

  function begin(text: string): ChatCompletionChunk[] {
    whole = whole === "" ? text.trimStart() : whole + text;
    if (whole === "") return [];
    isEvents = !/^[{[<]/.test(whole);
    if (isEvents) return events.feed(whole);
    if (whole.length > limits.maxBodyBytes) {
      const sentence = `The gateway's answer is larger than ${limits.maxBodyBytes} characters.`;
      failure = new GatewayError("malformed", sentence);
    }
    return [];
  }

  function finish(): ChatCompletionChunk[] {
    if (whole === "" || failure !== undefined) return [];
    try {
      const chunks = toChunks(parseCompletion(whole, safe));
      for (const chunk of chunks) events.count(chunk);
      return chunks;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      failure = error;
      return [];
    }
  }

  return {
    ...events,
    feed: (text) => (isEvents ? events.feed(text) : begin(text)),
    end: () => (isEvents ? events.end() : finish()),
    failure: () => failure ?? events.failure(),
  };
}
