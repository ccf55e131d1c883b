import type { ChatCompletionChunk, Delta } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import type { Source } from "../../src/text/sources.ts";

/**
 * A step of a scripted answer: text, a delta, cited pages, the finish reason, a promise to wait for, or an error that
 * interrupts the answer.
 */
export type Step = string | Delta | { sources: Source[] } | { finish: string } | Promise<unknown> | Error;

/**
 * A gateway that plays one script per request and repeats the last one. It records a copy of each request. An answer
 * whose script has no `finish` ends with "stop".
 */
export function fakeGateway(...scripts: Step[][]): { gateway: Gateway; requests: ChatRequest[]; open(): number } {
  const requests: ChatRequest[] = [];
  let open = 0;

  async function streamChat(request: ChatRequest, signal: AbortSignal, { onChunk }: StreamOptions): Promise<void> {
    const script = scripts[Math.min(requests.length, scripts.length - 1)] ?? [];
    requests.push(structuredClone(request));
    open += 1;
    try {
      // Waits a moment, so that the answer never arrives before the request was sent.
      await Promise.resolve();
      onChunk(chunk({ role: "assistant", content: "" }));
      let finish = "stop";
      for (const step of script) {
        signal.throwIfAborted();
        if (step instanceof Error) throw step;
        if (step instanceof Promise) await raceAbort(step, signal);
        else if (typeof step === "string") onChunk(chunk({ content: step }));
        else if ("finish" in step) finish = step.finish;
        else if ("sources" in step) onChunk({ ...chunk({}), sources: step.sources });
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
  return { id: "chatcmpl-1", model: "fake", choices };
}

function raceAbort(promise: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return Promise.race([promise, aborted]);
}
