import { createAnswerReport } from "./answer-report.ts";
import { ask, type CallDeps, type Notify } from "./call.ts";
import type { ChatCompletion, ChatCompletionChunk, ChatRequest } from "./chunks.ts";
import { parseCompletion } from "./completion.ts";
import { type AnswerReader, createAnswerReader } from "./stream.ts";
import type { GatewayCall } from "./transport.ts";
import { toChatJson } from "./validate.ts";
import { createWatch } from "./watch.ts";

type StreamChat = (
  request: ChatRequest,
  signal: AbortSignal,
  notify: Notify,
) => AsyncGenerator<ChatCompletionChunk, void>;

type CompleteChat = (request: ChatRequest, signal: AbortSignal, notify: Notify) => Promise<ChatCompletion>;

export function createStreamChat({ transport, retry, limits, safe, log }: CallDeps): StreamChat {
  return async function* streamChat(request, signal, notify) {
    const call = toCall(request, true);
    const attempts = retry(request.model, notify);
    for (;;) {
      await attempts.begin(signal);
      const watch = createWatch(signal, attempts.remainingMs());
      const report = createAnswerReport(log, request.model, safe);
      let reader: AnswerReader | undefined;
      let failure: unknown;
      try {
        watch.expect(limits.firstTokenMs);
        reader = createAnswerReader(await transport.send(call, watch), watch, { limits, safe });
        // One promise per read and not per chunk: many chunks come in one piece.
        for (let batch = await reader.read(); batch !== undefined; batch = await reader.read()) {
          report.chunk();
          for (const chunk of batch) {
            if (signal.aborted) throw signal.reason;
            yield chunk;
          }
        }
        signal.throwIfAborted();
        report.complete(reader.tally);
        return;
      } catch (error) {
        failure = error;
      } finally {
        reader?.leave();
        watch.end();
      }
      if (reader !== undefined) report.broken(reader.tally, failure);
      if (reader?.tally.answered === true) throw failure;
      await attempts.recover(failure, signal);
    }
  };
}

export function createCompleteChat(deps: CallDeps): CompleteChat {
  const { transport, limits, safe, log } = deps;
  return async (request, signal, notify) => {
    const report = createAnswerReport(log, request.model, safe);
    const completion = await ask(
      deps,
      {
        call: toCall(request, false),
        maxBytes: limits.maxBodyBytes,
        send: transport.send,
        read: (json) => parseCompletion(json, safe),
      },
      signal,
      notify,
    );
    report.whole(completion);
    return completion;
  };
}

function toCall(request: ChatRequest, streaming: boolean): GatewayCall {
  return {
    method: "POST",
    path: "/v1/chat/completions",
    json: toChatJson(request, streaming),
    model: request.model,
    streaming,
  };
}
