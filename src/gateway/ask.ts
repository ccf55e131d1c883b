import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Breaker, Pause } from "./breaker.ts";
import { GatewayError, type GatewayErrorKind, PASSING } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import type { Send } from "./transport.ts";
import { createWatch, describeSeconds, type Watch } from "./watch.ts";

/** A call is about to wait before it is made, or made again. */
export interface RetryNotice {
  waitMs: number;
  error: GatewayError;
}

/** The model or gateway asked instead of the requested one. */
export interface Detour {
  model: string;
  isSecondGateway: boolean;
  because: GatewayErrorKind;
}

export interface CallOptions {
  /**
   * Awaited right before each call is sent, after it is connected. If it rejects, that call is not sent, and the caller
   * gets the same rejection.
   */
  beforeSend?: () => Promise<void>;
  /** Called before each wait, so that it can be shown. */
  onRetry?: (notice: RetryNotice) => void;
  /** The first request is made although the model is paused: a person asked for it. */
  mustAsk?: boolean;
  /** False for a model that may not stand in for the requested one; absent: any may. */
  mayAsk?: (model: string) => boolean;
  /** Called before something else is asked than requested; undefined: the requested one is asked again. */
  onDetour?: (detour: Detour | undefined) => void;
}

/** One gateway, with what its calls share. */
export interface Endpoint {
  /** The second one is asked while the first is down. */
  name: "first" | "second";
  send: Send;
  breaker: Breaker;
}

export interface Route {
  endpoint: Endpoint;
  model: string;
}

/** One request in the form in which one route is asked. */
export interface Form<T> {
  /** Makes one call, within `firstTokenMs` for its first piece. Calls `onSign` when the model answers. */
  call(watch: Watch, firstTokenMs: number, onSign: () => void): Promise<T>;
  /** Changes the request after a refusal. False if nothing can be changed. */
  adapt(refusal: GatewayError): boolean;
}

/** One request, which may be sent several times and to several routes. */
export interface Question<T> {
  /** The requested one first, then those that may stand in for it. */
  routes: readonly [Route, ...Route[]];
  options?: CallOptions;
  /** Time in milliseconds within which the first piece of the answer must have come, from whatever route. */
  firstTokenTotalMs?: number;
  /** Called once for each route that is asked. */
  toForm(route: Route): Form<T>;
  /** True once a part of the answer has come that people see: then nothing is asked again. */
  hasBegun?(): boolean;
  /** True if another gateway or model may answer after this failure. */
  isDown?(error: GatewayError): boolean;
  /** Texts of people. The log quotes the gateway without them, and not at all if they are absent. */
  texts?: () => readonly string[];
}

export interface AskDeps {
  limits: GatewayLimits;
  log: Logger;
  onAnswered?: ((name: Endpoint["name"], model: string) => void) | undefined;
}

/** Calls to one route at most if another one can be asked, and failures after which that one is asked at once. */
const ATTEMPTS_BESIDE = 2;
const NOT_RETRIED: ReadonlySet<GatewayErrorKind> = new Set(["rate-limited", "stalled"]);
const MAX_CHANGES = 12;
/** Calls that waited for the same moment are spread over this long. */
const SPREAD_MS = 250;
/** Longest silence before a call that finds out whether a pause is over is given up for another route. */
const PROBE_SILENCE_MS = 15_000;
/** How often a call looks whether another one has found out that a pause is over. */
const LOOK_MS = 100;

/**
 * Asks the requested route; while that is down or at its limit, the routes that stand in for it; then the requested one
 * again, patiently. Each route is retried after failures that pass, and asked again in another form after a refusal. An
 * answer that has begun is never replaced. Rejects with the error of the requested route, or with the signal's reason.
 */
export async function ask<T>(deps: AskDeps, question: Question<T>, signal: AbortSignal): Promise<T> {
  const { options = {}, firstTokenTotalMs = Number.POSITIVE_INFINITY } = question;
  const [first, ...others] = question.routes;
  const own = { ...first, form: question.toForm(first) };
  const untilMs = performance.now() + firstTokenTotalMs;
  const isLate = () => performance.now() >= untilMs;
  const isOver = (error: unknown) =>
    question.hasBegun?.() === true || signal.aborted || !(error instanceof GatewayError);
  let failure: GatewayError;
  try {
    const mustAsk = options.mustAsk === true;
    return await askRoute(deps, question, own, { mustAsk, hasAlternative: others.length > 0, untilMs }, signal);
  } catch (error) {
    if (others.length === 0 || isOver(error) || !(error instanceof GatewayError) || question.isDown?.(error) !== true)
      throw error;
    failure = error;
  }
  const because = failure.kind;
  for (const route of others) {
    // An unreachable gateway is not asked for another model either.
    if (because === "unreachable" && route.endpoint === own.endpoint) continue;
    if (isLate()) throw failure;
    const detour = { model: route.model, isSecondGateway: route.endpoint !== own.endpoint, because };
    options.onDetour?.(detour);
    deps.log.warn({ ...detour, model: own.model, instead: route.model }, "a fallback is asked instead");
    try {
      const asked = { ...route, form: question.toForm(route) };
      return await askRoute(deps, question, asked, { mustAsk: false, hasAlternative: true, untilMs }, signal);
    } catch (error) {
      // A refusal is no answer either: the second gateway may have other models.
      if (isOver(error)) throw error;
      deps.log.warn({ err: error, instead: route.model }, "the fallback does not answer");
    }
  }
  options.onDetour?.(undefined);
  if (!PASSING.has(because) || isLate()) throw failure;
  return askRoute(deps, question, own, { mustAsk: false, hasAlternative: false, untilMs }, signal);
}

interface Patience {
  mustAsk: boolean;
  /** Something else can be asked, so the call waits little. */
  hasAlternative: boolean;
  /** When the first piece of the answer must have come, on the clock of `performance`. */
  untilMs: number;
}

/** Asks one route until it answers or no further attempt is left. */
async function askRoute<T>(
  { limits, log, onAnswered }: AskDeps,
  question: Question<T>,
  { endpoint, model, form }: Route & { form: Form<T> },
  { mustAsk, hasAlternative, untilMs }: Patience,
  signal: AbortSignal,
): Promise<T> {
  const { options = {}, hasBegun, texts } = question;
  const { breaker } = endpoint;
  const deadlineMs = performance.now() + limits.totalMs;
  const mostAttempts = hasAlternative ? Math.min(ATTEMPTS_BESIDE, limits.attempts) : limits.attempts;
  let budgetMs = hasAlternative ? 0 : limits.maxRetryWaitMs;
  let attempt = 1;
  let changes = 0;

  const remainingMs = () => Math.max(0, deadlineMs - performance.now());
  const silenceMs = (isProbe: boolean) => {
    const leftMs = Math.min(remainingMs(), Math.max(0, untilMs - performance.now()));
    return isProbe && hasAlternative ? Math.min(PROBE_SILENCE_MS, leftMs) : leftMs;
  };
  const wait = async (waitMs: number, error?: GatewayError) => {
    if (error !== undefined) options.onRetry?.({ waitMs, error });
    await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  };

  /** Waits while the model is paused. Resolves to the pause if this call is to find out whether it is over. */
  async function waitForPause(): Promise<Pause | undefined> {
    for (let pause = breaker.read(model); pause !== undefined; pause = breaker.read(model)) {
      const leftMs = Math.min(budgetMs, silenceMs(false));
      if (mustAsk && attempt === 1) return pause;
      if ((pause.waitMs > leftMs || pause.waitMs === 0) && (await breaker.claim(model))) return pause;
      signal.throwIfAborted();
      const waitMs = Math.max(pause.waitMs, LOOK_MS);
      if (waitMs > leftMs) throw toPauseError(model, { ...pause, waitMs });
      budgetMs -= waitMs;
      // If another call is finding out, the wait is too short to be worth showing.
      if (pause.waitMs > 0) await wait(waitMs + spread(), pause.error);
      else await wait(waitMs);
    }
    return undefined;
  }

  for (;;) {
    signal.throwIfAborted();
    const probed = await waitForPause();
    const succeed = () => breaker.succeeded(model, probed);
    const watch = createWatch(signal, remainingMs());
    try {
      const firstTokenMs = Math.max(1, Math.min(limits.firstTokenMs, silenceMs(probed !== undefined)));
      const answer = await form.call(watch, firstTokenMs, succeed);
      succeed();
      if (model !== "") onAnswered?.(endpoint.name, model);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayError)) throw error;
      // Words outside of an error object are those of any page at the address, or the model's.
      if (texts !== undefined && !error.isFormless && error.status !== undefined)
        error.logMessage += withoutTexts(error.quote, texts());
      if (hasBegun?.() === true) throw error;
      // A gateway that refuses is there.
      if (error.kind === "rejected" || error.kind === "unauthorized") succeed();
      if (changes < MAX_CHANGES && form.adapt(error)) {
        changes += 1;
        continue;
      }
      if (!PASSING.has(error.kind)) throw error;
      breaker.failed(model, error, probed);
      const asked = error.retryAfterMs;
      if (attempt >= mostAttempts || (hasAlternative && NOT_RETRIED.has(error.kind))) throw error;
      const waitMs = asked ?? backoff(attempt, limits);
      if ((asked !== undefined && asked > budgetMs) || waitMs >= silenceMs(probed !== undefined)) throw error;
      attempt += 1;
      if (asked !== undefined) budgetMs -= asked;
      log.debug({ err: error, model, waitMs }, "the gateway is asked again");
      await wait(asked === undefined ? waitMs : asked + spread(), error);
    } finally {
      watch.end();
    }
  }
}

/** Anywhere in the range, which doubles: callers that failed together do not come back together. */
function backoff(attempt: number, { backoffMinMs, backoffMaxMs }: GatewayLimits): number {
  const ceilingMs = Math.min(backoffMaxMs, backoffMinMs * 2 ** (attempt + 1));
  return backoffMinMs + Math.random() * Math.max(0, ceilingMs - backoffMinMs);
}

function spread(): number {
  return Math.random() * SPREAD_MS;
}

function toPauseError(model: string, { waitMs, error, isAsked }: Pause & { waitMs: number }): GatewayError {
  const subject = model === "" ? "" : ` for model ${model}`;
  const why = isAsked ? "asked for a pause of another" : "failed several times in a row, and is asked again in";
  return new GatewayError(error.kind, `The gateway ${why} ${describeSeconds(waitMs)}${subject}, so no call was made.`, {
    cause: error,
    retryAfterMs: waitMs,
    status: error.status,
    isPause: true,
  });
}

/** Shorter runs of characters that a message shares with people's texts are words of the language. */
const SHARED_CHARS = 8;
const HIDDEN = "[…]";

/** The gateway's words without anything they share with people's texts, however its letters and spaces are written. */
function withoutTexts(quote: string, texts: readonly string[]): string {
  const runs = new Map<number, number[]>();
  const lower = toComparable(quote);
  eachRun(lower, (hash, at) => runs.set(hash, [...(runs.get(hash) ?? []), at]));
  const hidden = new Set<number>();
  for (const text of texts.map(toComparable)) {
    eachRun(text, (hash, from) => {
      const open = runs.get(hash);
      if (open === undefined) return;
      const run = text.slice(from, from + SHARED_CHARS);
      const found = open.filter((at) => lower.startsWith(run, at));
      for (const at of found) for (let char = 0; char < SHARED_CHARS; char++) hidden.add(at + char);
      if (found.length > 0)
        runs.set(
          hash,
          open.filter((at) => !found.includes(at)),
        );
      if (found.length === open.length) runs.delete(hash);
    });
  }
  // Spaces may have been joined: the positions are those of the comparable text.
  const shown = quote.replace(SPACES, " ");
  return Array.from({ length: shown.length }, (_, at) =>
    hidden.has(at) ? (hidden.has(at - 1) ? "" : HIDDEN) : shown.charAt(at),
  ).join("");
}

/** Calls `visit` with each run of `SHARED_CHARS` characters, and a hash of it: a conversation has millions. */
function eachRun(text: string, visit: (hash: number, at: number) => void): void {
  let hash = 0;
  for (let at = 0; at < text.length; at++) {
    // 32 bits, shifted by 4 for each character: those before the run are gone.
    hash = (hash << 4) ^ text.charCodeAt(at);
    if (at >= SHARED_CHARS - 1) visit(hash, at - SHARED_CHARS + 1);
  }
}

/** A safe text has one space for these. */
const SPACES = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu;

/** The only letter whose lower case is longer would move what follows it. */
function toComparable(text: string): string {
  return text.replace(SPACES, " ").replaceAll("İ", "i").toLowerCase();
}
