import type { ChatCompletionChunk, Delta } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";

/** A piece of a scripted answer: text, a delta, the word that ends it, a promise to wait for, or the error that cuts it. */
export type Step = string | Delta | { finish: string } | Promise<unknown> | Error;

/**
 * A gateway that plays one script per request and records the requests as they stood when they were made.
 * When the scripts run out, the last one is played again. An answer without `finish` ends with "stop".
 */
export function fakeGateway(...scripts: Step[][]): { gateway: Gateway; requests: ChatRequest[]; open(): number } {
  const requests: ChatRequest[] = [];
  let open = 0;

  async function streamChat(request: ChatRequest, signal: AbortSignal, { onChunk }: StreamOptions): Promise<void> {
    const script = scripts[Math.min(requests.length, scripts.length - 1)] ?? [];
    requests.push(structuredClone(request));
    open += 1;
    try {
      // No answer comes before the question has left.
      await Promise.resolve();
      onChunk(chunk({ role: "assistant", content: "" }));
      let finish = "stop";
      for (const step of script) {
        signal.throwIfAborted();
        if (step instanceof Error) throw step;
        if (step instanceof Promise) await raceAbort(step, signal);
        else if (typeof step === "string") onChunk(chunk({ content: step }));
        else if ("finish" in step) finish = step.finish;
        else onChunk(chunk(step));
      }
      onChunk(chunk({}, finish));
    } finally {
      open -= 1;
    }
  }

  const unused = () => Promise.reject(new Error("not part of this test"));
  const gateway = { streamChat, listModels: unused, close: async () => {} } as unknown as Gateway;
  return { gateway, requests, open: () => open };
}

function chunk(delta: Delta, finish: string | null = null): ChatCompletionChunk {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "fake", choices };
}

function raceAbort(promise: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return Promise.race([promise, aborted]);
}
