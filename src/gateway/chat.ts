import { StringDecoder } from "node:string_decoder";
import type { Logger } from "pino";
import { isName } from "../log/fields.ts";
import { applyChanges, type Change, describeChange, findChange } from "./adaptations.ts";
import { type AskDeps, ask, type CallOptions, type Route } from "./ask.ts";
import type { ResponseBody } from "./body.ts";
import { type ChatCompletionChunk, type ChatMessage, textOf } from "./chunks.ts";
import { GatewayError, PASSING } from "./errors.ts";
import { type ExtraBody, fieldsFor } from "./extra-body.ts";
import { toConnectionError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import { type ChatBody, type ChatRequest, toChatBody, toChatJson } from "./request.ts";
import type { SafeText } from "./safe-text.ts";
import { createStreamDecoder, type OnChunk, type StreamDecoder, type Tally } from "./stream-decoder.ts";
import type { Watch } from "./watch.ts";

export interface StreamOptions extends CallOptions {
  /** Returns without waiting for anything: a promise for each of thousands of chunks would cost too much. */
  onChunk: OnChunk;
  /** Called when an answer begins whose request had to be changed, with the names of the changes, see `adaptations.ts`. */
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

/** Gateways say with these that they cannot do what was asked; another one may. */
const ELSEWHERE_STATUSES: ReadonlySet<number | undefined> = new Set([402, 501, 505]);

export function createStreamChat(deps: ChatDeps): StreamChat {
  const { limits, log } = deps;
  const believed = createBeliefs();

  return async (request, routes, { onChunk, onAdapted, ...options }, signal) => {
    const forms = new Map<Route, Form>();
    let tally: Readonly<Tally> | undefined;
    const formOf = (route: Route): Form => {
      const form = forms.get(route) ?? createForm(deps, request, route, believed);
      forms.set(route, form);
      return form;
    };

    await ask(
      deps,
      {
        routes,
        options,
        firstTokenTotalMs: limits.firstTokenTotalMs,
        hasBegun: () => tally?.answered === true,
        adapt: (route, refusal) => formOf(route).adapt(refusal),
        isDown: ({ kind, status, reason }) =>
          PASSING.has(kind) || kind === "malformed" || reason === "no-credit" || ELSEWHERE_STATUSES.has(status),
        texts: () => request.messages.flatMap(wordsOf),
        async call(route, watch, firstTokenMs, onSign) {
          const { endpoint, model } = route;
          const form = formOf(route);
          const report = createAnswerReport(log, model, deps.safe);
          let hasSign = false;
          const hand = (chunk: ChatCompletionChunk) => {
            if (!hasSign) {
              hasSign = true;
              report.firstChunk();
              onSign();
              form.succeed();
              const names = form.changed();
              if (names.length > 0) onAdapted?.(names);
            }
            onChunk(chunk);
          };
          const answer = createAnswer({ ...limits, firstTokenMs }, deps.safe, watch, hand, form.name);
          tally = answer.tally;
          try {
            watch.expect(firstTokenMs);
            const call = { method: "POST", api: "openai", path: "/chat/completions", model, streaming: true } as const;
            const { beforeSend } = options;
            const body = toChatJson(form.body(), form.name);
            await answer.read(await endpoint.send({ ...call, body, beforeSend }, watch));
            signal.throwIfAborted();
            form.finish(answer.tally);
            report.complete(answer.tally);
          } catch (error) {
            if (answer.isOpen()) report.broken(answer.tally, error);
            throw error;
          } finally {
            answer.leave();
          }
        },
      },
      signal,
    );
  };
}

/** Words that the log may not have. */
function wordsOf(message: ChatMessage): string[] {
  if (message.role === "system") return [];
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
  return [textOf(message), ...calls.map((call) => call.function.arguments)];
}

/** How one request is put to one route. */
interface Form {
  /** The route, for what it attaches to its answers. */
  readonly name: string;
  /** Names of the changes that this request needed. */
  changed(): string[];
  body(): ChatBody;
  /** Changes the request as a refusal asks. False if there is nothing to change. */
  adapt(refusal: GatewayError): boolean;
  /** The model answers: its refusals are believed. */
  succeed(): void;
  /** The answer is whole. */
  finish(tally: Readonly<Tally>): void;
}

function createForm(
  { extraBody, log }: ChatDeps,
  request: ChatRequest,
  { endpoint, model }: Route,
  beliefs: Beliefs,
): Form {
  const name = `${endpoint.name} ${model}`;
  const plain = toChatBody({ ...request, model }, fieldsFor(extraBody, model));
  const own: Array<{ change: Change; refusal: GatewayError }> = [];
  let changes = beliefs.changesOf(name);
  // The first answer without usage shows that the gateway has to be asked for it.
  let asksUsage = plain.stream_options === undefined && beliefs.usageOf(name) === "ask";
  let isUsageRefused = false;

  const body = () => applyChanges(asksUsage ? { ...plain, stream_options: { include_usage: true } } : plain, changes);

  return {
    name,
    changed: () => changes.filter((change) => applyChanges(plain, [change]) !== plain).map(({ name }) => name),
    body,
    adapt(refusal) {
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
    succeed() {
      // A request that is refused in its new form too was refused for another reason.
      for (const { change, refusal } of own.splice(0)) {
        const fields = { model, gateway: endpoint.name, adaptation: change.name, err: refusal };
        log.info(fields, `the gateway refused a request; from now on Palaver ${describeChange(change)}`);
        beliefs.believe(name, change);
      }
      if (isUsageRefused) beliefs.setUsage(name, "leave");
    },
    finish({ usage }) {
      if (plain.stream_options !== undefined || isUsageRefused) return;
      if (usage !== undefined || beliefs.usageOf(name) === "leave") return;
      beliefs.setUsage(name, asksUsage ? "leave" : "ask");
    },
  };
}

/**
 * A refusal is believed for so long: the model behind a name changes, and some refuse one picture with the words that
 * others use to refuse all.
 */
const BELIEVED_MS = 10 * 60_000;

interface Beliefs {
  changesOf(route: string): Change[];
  believe(route: string, change: Change): void;
  usageOf(route: string): "ask" | "leave" | undefined;
  setUsage(route: string, usage: "ask" | "leave"): void;
}

function createBeliefs(): Beliefs {
  const changes = new Map<string, Array<{ change: Change; untilMs: number }>>();
  const usages = new Map<string, "ask" | "leave">();
  return {
    changesOf: (route) =>
      (changes.get(route) ?? []).filter(({ untilMs }) => untilMs > performance.now()).map(({ change }) => change),
    believe(route, change) {
      const others = (changes.get(route) ?? []).filter(({ untilMs }) => untilMs > performance.now());
      changes.set(route, [...others, { change, untilMs: performance.now() + BELIEVED_MS }]);
    },
    usageOf: (route) => usages.get(route),
    setUsage: (route, usage) => void usages.set(route, usage),
  };
}

/** Reads one answer to a streaming request. */
interface Answer {
  readonly tally: Readonly<Tally>;
  /** Resolves when all chunks are handed over. Rejects with a GatewayError, the watch's reason or the error of `onChunk`. */
  read(body: ResponseBody): Promise<void>;
  isOpen(): boolean;
  /** Gives the connection back if the answer was whole, and closes it otherwise. */
  leave(): void;
}

interface Thrown {
  error: unknown;
}

/** Decodes the bytes as they come and hands the chunks over at once, so that a chunk costs no promise. */
function createAnswer(limits: GatewayLimits, safe: SafeText, watch: Watch, onChunk: OnChunk, from: string): Answer {
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
    // A silent gateway leaves text behind that waited for more; a caller who left takes none.
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
    read(given) {
      body = given;
      expect(readPatience(tally, limits));
      // At once: the reader may leave in the middle of what was read together.
      watch.signal.addEventListener("abort", () => settle(), { once: true });
      body.listen({ onData, onEnd: () => settle(undefined, attempt(decoder.end)), onError: settle });
      return end.promise;
    },
    isOpen: () => body !== undefined,
    leave() {
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

/** Finds the reason why an answer that has ended is not whole. */
function findGap(decoder: StreamDecoder, broken: unknown, signal: AbortSignal): Thrown | undefined {
  const failure = decoder.failure();
  const { finishReason, isFinished, reasons } = decoder.tally;
  const isBroken = signal.aborted || failure !== undefined || broken !== undefined;
  // A finished answer lacks nothing but its usage and `[DONE]`. If each piece came with a reason, none says so.
  if (finishReason !== undefined && (isFinished || reasons < 2 || !isBroken)) return undefined;
  if (signal.aborted) return { error: signal.reason };
  if (failure !== undefined) return { error: failure };
  if (broken !== undefined) return { error: toConnectionError("interrupted", broken) };
  if (!decoder.tally.opened) {
    return { error: new GatewayError("malformed", "The gateway's answer is empty: it has no choice in it.") };
  }
  if (decoder.isDone()) return undefined;
  return { error: new GatewayError("interrupted", "The gateway's answer ended before it was complete.") };
}

/** Logs one answer: the model that gave it, how fast it came and how long it is; never a word of it. */
interface AnswerReport {
  firstChunk(): void;
  complete(tally: Readonly<Tally>): void;
  /** The answer ended before it was whole. */
  broken(tally: Readonly<Tally>, failure: unknown): void;
}

function createAnswerReport(log: Logger, requestedModel: string, safe: SafeText): AnswerReport {
  const startedMs = performance.now();
  let firstChunkMs: number | undefined;

  const sinceStart = (): number => Math.round(performance.now() - startedMs);

  /** Gateways may send a sentence where a name belongs. */
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
      reasoningChars: tally.reasoningChars > 0 ? tally.reasoningChars : undefined,
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
