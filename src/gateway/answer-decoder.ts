import type { ChatCompletion } from "./chunks.ts";
import { parseCompletion, toChunks } from "./completion.ts";
import { GatewayError } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import { createStreamDecoder, type OnChunk, type StreamDecoder } from "./stream-decoder.ts";

/**
 * Decodes the answer to a streaming request, which some servers give as one JSON document. What it is shows in
 * its first character, whatever its content type says. Pure.
 */
export function createAnswerDecoder(limits: GatewayLimits, safe: SafeText, onChunk: OnChunk): StreamDecoder {
  const events = createStreamDecoder(limits, safe, onChunk);
  const decoder: StreamDecoder = { ...events, feed: begin };
  /** All of an answer that is no stream. */
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
