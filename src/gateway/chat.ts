import { StringDecoder } from "node:string_decoder";
import { isName } from "../log/fields.ts";
import { applyChanges, type Change, describeChange, findChange } from "./adaptations.ts";
import { type AskDeps, ask, type CallOptions, type Form, type Route } from "./ask.ts";
import { type Beliefs, createBeliefs } from "./beliefs.ts";
import type { ResponseBody } from "./body.ts";
import { type ChatCompletionChunk, type ChatMessage, textOf } from "./chunks.ts";
import { ELSEWHERE_STATUSES, GatewayError, PASSING } from "./errors.ts";
import { type ExtraBody, fieldsFor } from "./extra-body.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import { type ChatRequest, toChatBody, toChatJson } from "./request.ts";
import type { SafeText } from "./safe-text.ts";
import { createStreamDecoder, type OnChunk, type StreamDecoder, type Tally } from "./stream-decoder.ts";
import type { Watch } from "./watch.ts";

export interface StreamOptions extends CallOptions {
  /** Must not return a promise, because a promise for each of thousands of chunks would be too slow. */
  onChunk: OnChunk;
  /** Called with the names of the changes (see `adaptations.ts`) when a changed request gets an answer. */
  onAdapted?: (changes: readonly string[]) => void;
}

export type StreamChat = (
  request: ChatRequest,
  routes: readonly [Route, ...Route[]],
  options: StreamOptions,
  signal: AbortSignal,
) => Promise<void>;

export interface ChatDeps extends AskDeps {
  safe: SafeText;
  extraBody: ExtraBody;
}

export function createStreamChat(deps: ChatDeps): StreamChat {
  const { limits, log, safe } = deps;
  const known = new Map<string, Known>();

  return async (request, routes, { onChunk, onAdapted, ...options }, signal) => {
    let tally: Readonly<Tally> | undefined;

    function toForm(route: Route): Form<void> {
      const { endpoint, model } = route;
      const name = `${endpoint.name} ${model}`;
      const own = known.get(name) ?? { changes: createBeliefs(), usage: undefined };
      known.set(name, own);
      const wording = createWording(deps, request, route, own);

      return {
        adapt: wording.adapt,
        async call(watch, firstTokenMs, onSign) {
          const startedMs = performance.now();
          const sinceStart = () => Math.round(performance.now() - startedMs);
          let firstChunkMs: number | undefined;
          const hand = (chunk: ChatCompletionChunk) => {
            if (firstChunkMs === undefined) {
              firstChunkMs = sinceStart();
              onSign();
              wording.succeed();
              const names = wording.changed();
              if (names.length > 0) onAdapted?.(names);
            }
            onChunk(chunk);
          };
          const answer = createAnswer({ ...limits, firstTokenMs }, safe, watch, hand, name);
          tally = answer.tally;
          const describe = () => ({
            ...describeAnswer(answer.tally, safe),
            requestedModel: model,
            firstChunkMs,
            totalMs: sinceStart(),
          });
          try {
            watch.expect(firstTokenMs);
            const call = { method: "POST", api: "openai", path: "/chat/completions", model, streaming: true } as const;
            const body = toChatJson(wording.body(), name);
            await answer.read(await endpoint.send({ ...call, body }, watch));
            signal.throwIfAborted();
            wording.finish(answer.tally);
            log.info(describe(), "answer complete");
          } catch (error) {
            const kind = error instanceof GatewayError ? error.kind : "left";
            if (answer.isOpen()) log.info({ ...describe(), kind }, "answer broke off");
            throw error;
          } finally {
            answer.leave();
          }
        },
      };
    }

    await ask(
      deps,
      {
        routes,
        options,
        firstTokenTotalMs: limits.firstTokenTotalMs,
        toForm,
        hasBegun: () => tally?.answered === true,
        isDown: ({ kind, status, reason }) =>
          PASSING.has(kind) || kind === "malformed" || reason === "no-credit" || ELSEWHERE_STATUSES.has(status),
        texts: () => request.messages.flatMap(wordsOf),
      },
      signal,
    );
  };
}

/** Returns the texts of a message that the log must not show. */
function wordsOf(message: ChatMessage): string[] {
  if (message.role === "system") return [];
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
  return [textOf(message), ...calls.map((call) => call.function.arguments)];
}

interface Known {
  changes: Beliefs<Change>;
  /**
   * "ask": an answer lacked its usage, so requests must ask for it. "leave": asking for usage fails or has no effect.
   */
  usage: "ask" | "leave" | undefined;
}

function createWording({ extraBody, log }: ChatDeps, request: ChatRequest, { endpoint, model }: Route, known: Known) {
  const plain = toChatBody({ ...request, model }, fieldsFor(extraBody, model));
  const own: Array<{ change: Change; refusal: GatewayError }> = [];
  let changes = known.changes.all();
  let asksUsage = plain.stream_options === undefined && known.usage === "ask";
  let isUsageRefused = false;

  const body = () => applyChanges(asksUsage ? { ...plain, stream_options: { include_usage: true } } : plain, changes);

  return {
    body,
    changed: () => changes.filter((change) => applyChanges(plain, [change]) !== plain).map(({ name }) => name),
    adapt(refusal: GatewayError): boolean {
      const change = findChange(refusal, body(), changes);
      const mayBeUsage = asksUsage && refusal.kind === "rejected" && refusal.reason === undefined;
      if (mayBeUsage && (change === undefined || change.name === "stream_options")) {
        asksUsage = false;
        isUsageRefused = true;
        return true;
      }
      if (change === undefined) return false;
      own.push({ change, refusal });
      changes = [...changes, change];
      return true;
    },
    /** Called when the model answers: the changes worked, so the client remembers them. */
    succeed(): void {
      // Remember changes only now: if the gateway refuses the changed request too, the changes did not help.
      for (const { change, refusal } of own.splice(0)) {
        const fields = { model, gateway: endpoint.name, adaptation: change.name, err: refusal };
        log.info(fields, `the gateway refused a request; from now on Palaver ${describeChange(change)}`);
        known.changes.add(change);
      }
      if (isUsageRefused) known.usage = "leave";
    },
    finish({ usage }: Readonly<Tally>): void {
      if (plain.stream_options !== undefined || isUsageRefused) return;
      if (usage !== undefined || known.usage === "leave") return;
      known.usage = asksUsage ? "leave" : "ask";
    },
  };
}

interface Thrown {
  error: unknown;
}

/** Reads one answer: decodes bytes as they arrive and passes chunks on at once, without a promise for each. */
function createAnswer(limits: GatewayLimits, safe: SafeText, watch: Watch, onChunk: OnChunk, from: string) {
  let isOver = false;
  const hand = (chunk: ChatCompletionChunk) => {
    if (!isOver) onChunk(chunk);
  };
  const decoder = createStreamDecoder(limits, safe, hand, from);
  const { tally } = decoder;
  const utf8 = new StringDecoder("utf8");
  const end = Promise.withResolvers<void>();
  let body: ResponseBody | undefined;
  let isClean = false;
  let patienceMs = 0;

  function settle(broken?: unknown, thrown?: Thrown): void {
    if (isOver) return;
    const { signal } = watch;
    // If the gateway went silent, people must still see the text that was kept back. If the caller aborted, no one
    // needs that text.
    const hasRest = !signal.aborted || signal.reason instanceof GatewayError;
    const gap = thrown ?? (hasRest ? attempt(decoder.rest) : undefined) ?? findGap(decoder, broken, signal);
    isOver = true;
    isClean = gap === undefined && broken === undefined && decoder.failure() === undefined && !watch.signal.aborted;
    if (gap === undefined) end.resolve();
    else end.reject(gap.error);
  }

  function expect(ms: number): void {
    patienceMs = ms;
    watch.expect(ms, () => tally.signs);
  }

  function onData(bytes: Buffer): void {
    if (isOver) return;
    const thrown = attempt(() => decoder.feed(utf8.write(bytes)));
    if (thrown !== undefined) return settle(undefined, thrown);
    if (decoder.isDone() || decoder.failure() !== undefined) return settle();
    const ms = readPatience(tally, limits);
    if (ms !== patienceMs) expect(ms);
  }

  return {
    tally,
    /** Resolves after the last chunk. Rejects with a GatewayError, the watch's reason or an error from `onChunk`. */
    read(given: ResponseBody): Promise<void> {
      body = given;
      expect(readPatience(tally, limits));
      // Settle immediately, because the signal can abort in the middle of a read.
      watch.signal.addEventListener("abort", () => settle(), { once: true });
      body.listen({ onData, onEnd: () => settle(undefined, attempt(decoder.end)), onError: settle });
      return end.promise;
    },
    isOpen: () => body !== undefined,
    /** Keeps the connection if the answer was complete, and closes it otherwise. */
    leave(): void {
      if (isClean) body?.drain();
      else body?.destroy();
    },
  };
}

function attempt(work: () => void): Thrown | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return { error };
  }
}

function readPatience(tally: Readonly<Tally>, { firstTokenMs, idleMs, tailMs }: GatewayLimits): number {
  if (tally.isFinished) return tailMs;
  return tally.answered ? idleMs : firstTokenMs;
}

/** Returns why an ended answer is incomplete; undefined if it is complete. */
function findGap(decoder: StreamDecoder, broken: unknown, signal: AbortSignal): Thrown | undefined {
  const failure = decoder.failure();
  const { finishReason, isFinished, reasons } = decoder.tally;
  const isBroken = signal.aborted || failure !== undefined || broken !== undefined;
  // A finish reason completes an answer even without usage and `[DONE]`, unless every chunk has a reason.
  if (finishReason !== undefined && (isFinished || reasons < 2 || !isBroken)) return undefined;
  if (signal.aborted) return { error: signal.reason };
  if (failure !== undefined) return { error: failure };
  if (broken !== undefined) return { error: toConnectionError("interrupted", broken) };
  if (!decoder.tally.opened) {
    return { error: new GatewayError("malformed", "The gateway's response is empty: it contains no choices.") };
  }
  if (decoder.isDone()) return undefined;
  return { error: new GatewayError("interrupted", "The gateway's answer ended before it was complete.") };
}

function describeAnswer(tally: Readonly<Tally>, safe: SafeText): Record<string, unknown> {
  /** Some gateways send a sentence instead of a name. */
  const toName = (text: string) => {
    const name = safe.name(text);
    return name === "" || isName(name) ? name : "[not a name]";
  };
  return {
    id: toName(tally.id),
    model: toName(tally.model),
    chars: tally.chars,
    reasoningChars: tally.reasoningChars > 0 ? tally.reasoningChars : undefined,
    finishReason: tally.finishReason === undefined ? undefined : toName(tally.finishReason),
    usage: tally.usage,
    // If no event was broken, use `undefined` to keep this field out of the log.
    droppedEvents: tally.malformed > 0 ? tally.malformed : undefined,
  };
}
