import { createAnswerReport } from "./answer-report.ts";
import type { CallDeps } from "./call.ts";
import type { ChunkStream } from "./chunk-stream.ts";
import type { Attempts } from "./retry.ts";
import { type AnswerReader, createAnswerReader } from "./stream.ts";
import type { GatewayCall } from "./transport.ts";
import { createWatch } from "./watch.ts";

/** A streaming call, attempt by attempt. */
export interface StreamedAnswer {
  /**
   * Pushes the chunks into `stream` and resolves when they are an answer that is whole. Rejects when it broke off,
   * when there is no further attempt to make, and with the signal's reason when `signal` aborts.
   */
  pour(call: GatewayCall, attempts: Attempts, stream: ChunkStream): Promise<void>;
  /** The consumer has read what was too much for it. */
  resume(): void;
}

export function createStreamedAnswer(deps: CallDeps, model: string, signal: AbortSignal): StreamedAnswer {
  const { transport, limits, safe, log } = deps;
  let reader: AnswerReader | undefined;

  async function attempt(call: GatewayCall, remainingMs: number, stream: ChunkStream): Promise<void> {
    const watch = createWatch(signal, remainingMs);
    const report = createAnswerReport(log, model, safe);
    reader = undefined;
    try {
      watch.expect(limits.firstTokenMs);
      reader = createAnswerReader(await transport.send(call, watch), watch, stream, { limits, safe, report });
      await reader.read();
      signal.throwIfAborted();
      report.complete(reader.tally);
    } catch (error) {
      if (reader !== undefined) report.broken(reader.tally, error);
      throw error;
    } finally {
      reader?.leave();
      watch.end();
    }
  }

  return {
    async pour(call, attempts, stream) {
      for (;;) {
        await attempts.begin(signal);
        try {
          return await attempt(call, attempts.remainingMs(), stream);
        } catch (error) {
          if (reader?.tally.answered === true) throw error;
          await attempts.recover(error, signal);
        }
      }
    },
    resume: () => reader?.resume(),
  };
}
