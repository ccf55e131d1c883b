import { createAnswerReport } from "./answer-report.ts";
import { ask, type CallDeps, type Notify } from "./call.ts";
import { createChunkStream } from "./chunk-stream.ts";
import type { ChatCompletion, ChatCompletionChunk, ChatRequest } from "./chunks.ts";
import { parseCompletion } from "./completion.ts";
import { createStreamedAnswer } from "./streamed-answer.ts";
import type { GatewayCall } from "./transport.ts";
import { toChatJson } from "./validate.ts";

type StreamChat = (
  request: ChatRequest,
  signal: AbortSignal,
  notify: Notify,
) => AsyncGenerator<ChatCompletionChunk, void>;

type CompleteChat = (request: ChatRequest, signal: AbortSignal, notify: Notify) => Promise<ChatCompletion>;

export function createStreamChat(deps: CallDeps): StreamChat {
  return (request, signal, notify) => {
    /** Aborts with the caller's signal, and when the consumer leaves. */
    const ended = new AbortController();
    const answer = createStreamedAnswer(deps, request.model, ended.signal);
    const stream = createChunkStream({ begin: () => void begin(), resume: answer.resume, leave }, signal);

    function leave(): void {
      ended.abort(signal.reason);
    }

    async function begin(): Promise<void> {
      signal.addEventListener("abort", leave, { once: true });
      try {
        await answer.pour(toCall(request, true), deps.retry(request.model, notify), stream);
        stream.end();
      } catch (error) {
        stream.end({ error });
      } finally {
        signal.removeEventListener("abort", leave);
      }
    }
    return stream.chunks;
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
