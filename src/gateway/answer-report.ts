import type { Logger } from "pino";
import { isName } from "../log/fields.ts";
import { GatewayError } from "./errors.ts";
import type { SafeText } from "./safe-text.ts";
import type { Tally } from "./stream-decoder.ts";

/** What the log learns of one answer: who gave it, how fast, how much; never a word of it. */
export interface AnswerReport {
  firstChunk(): void;
  complete(tally: Readonly<Tally>): void;
  /** The answer ended before it was whole. */
  broken(tally: Readonly<Tally>, failure: unknown): void;
}

export function createAnswerReport(log: Logger, requestedModel: string, safe: SafeText): AnswerReport {
  const startedMs = performance.now();
  let firstChunkMs: number | undefined;

  const sinceStart = (): number => Math.round(performance.now() - startedMs);

  /** What should be a name may be a sentence all the same. */
  function toName(text: string): string {
    const name = safe.name(text);
    return name === "" || isName(name) ? name : "[not a name]";
  }

  function describe(tally: Readonly<Tally>): Record<string, unknown> {
    return {
      id: toName(tally.id),
      model: toName(tally.model),
      requestedModel,
      firstChunkMs,
      totalMs: sinceStart(),
      chars: tally.chars,
      finishReason: tally.finishReason === undefined ? undefined : toName(tally.finishReason),
      usage: tally.usage,
      // Only when there are any: a broken event is worth looking for.
      droppedEvents: tally.malformed > 0 ? tally.malformed : undefined,
    };
  }

  return {
    firstChunk() {
      firstChunkMs = sinceStart();
    },
    complete(tally) {
      log.info(describe(tally), "answer complete");
    },
    broken(tally, failure) {
      const kind = failure instanceof GatewayError ? failure.kind : "left";
      log.info({ ...describe(tally), kind }, "answer broke off");
    },
  };
}
