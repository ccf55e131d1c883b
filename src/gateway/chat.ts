import { createAnswerReport } from "./answer-report.ts";
import type { CallDeps } from "./call.ts";
import type { ChatCompletionChunk, ChatRequest } from "./chunks.ts";
import type { Attempts, CallOptions } from "./retry.ts";
import { type AnswerReader, createAnswerReader } from "./stream.ts";
import type { OnChunk } from "./stream-decoder.ts";
import type { GatewayCall } from "./transport.ts";
import { toChatJson } from "./validate.ts";
import { createWatch } from "./watch.ts";

type StreamChat = (request: ChatRequest, signal: AbortSignal, onChunk: OnChunk, options: CallOptions) => Promise<void>;

export function createStreamChat(deps: CallDeps): StreamChat {
  return async (request, signal, onChunk, options) => {
    const call = toCall(request);
    const attempts = deps.retry(request.model, options, deps.limits.firstTokenTotalMs);
    for (;;) {
      await attempts.begin(signal);
      const failure = await attempt(deps, call, attempts, onChunk, signal);
      if (failure === undefined) return;
      if (failure.answered) throw failure.error;
      await attempts.recover(failure.error, signal);
    }
  };
}

interface Failure {
  error: unknown;
  /** Text or a tool call has come: the answer cannot be begun again. */
  answered: boolean;
}

/** Resolves to what went wrong, or to undefined when the answer is whole and all its chunks were handed over. */
async function attempt(
  { transport, limits: usual, safe, log }: CallDeps,
  call: GatewayCall,
  attempts: Attempts,
  onChunk: OnChunk,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const watch = createWatch(signal, attempts.remainingMs());
  const report = createAnswerReport(log, call.model ?? "", safe);
  const firstTokenMs = Math.max(1, Math.min(usual.firstTokenMs, attempts.remainingSilenceMs()));
  const limits = { ...usual, firstTokenMs };
  let reader: AnswerReader | undefined;
  let hasBegun = false;
  const onFirst = (chunk: ChatCompletionChunk) => {
    if (!hasBegun) attempts.succeed();
    hasBegun = true;
    onChunk(chunk);
  };
  try {
    watch.expect(limits.firstTokenMs);
    reader = createAnswerReader(await transport.send(call, watch), watch, onFirst, { limits, safe, report });
    await reader.read();
    signal.throwIfAborted();
    report.complete(reader.tally);
    return undefined;
  } catch (error) {
    if (reader !== undefined) report.broken(reader.tally, error);
    return { error, answered: reader?.tally.answered === true };
  } finally {
    reader?.leave();
    watch.end();
  }
}

function toCall(request: ChatRequest): GatewayCall {
  const { model } = request;
  return { method: "POST", path: "/v1/chat/completions", json: toChatJson(request), model, streaming: true };
}
