import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Breaker, Pause } from "./breaker.ts";
import { GatewayError, type GatewayErrorKind, PASSING } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import type { Send } from "./transport.ts";
import { createWatch, describeSeconds, type Watch } from "./watch.ts";

export interface RetryNotice {
  waitMs: number;
  error: GatewayError;
}

/** The model or gateway that Palaver asks instead of the requested one. */
export interface Fallback {
  model: string;
  isSecondGateway: boolean;
  because: GatewayErrorKind;
}

export interface CallOptions {
  onRetry?: (notice: RetryNotice) => void;
  /** True if a person asked for this call: the first attempt then ignores a pause of the model. */
  mustAsk?: boolean;
  /** True if Palaver may ask this model instead of the requested one. Absent: it may ask any model. */
  mayAsk?: (model: string) => boolean;
  /** Called before Palaver asks another model or gateway, and with undefined when it asks the requested one again. */
  onFallback?: (fallback: Fallback | undefined) => void;
}

/** A gateway, with the state that its calls share. */
export interface Endpoint {
  /** Palaver asks the second gateway while the first is down. */
  name: "first" | "second";
  send: Send;
  breaker: Breaker;
}

export interface Route {
  endpoint: Endpoint;
  model: string;
}

export interface Form<T> {
  /** Makes one call. Calls `onSign` at the first piece of the answer, and rejects if that takes over `firstTokenMs`. */
  call(watch: Watch, firstTokenMs: number, onSign: () => void): Promise<T>;
  /** Changes the request after a refusal. Returns false if no change can help. */
  adapt(refusal: GatewayError): boolean;
}

export interface Question<T> {
  /** The requested route first, then its alternatives. */
  routes: readonly [Route, ...Route[]];
  options?: CallOptions;
  /** The longest time until the first piece of an answer, from any route. */
  firstTokenTotalMs?: number;
  toForm(route: Route): Form<T>;
  /** True once people can see part of the answer: from then on, no attempt is repeated. */
  hasBegun?(): boolean;
  /** True if another gateway or model may answer after this failure. */
  isDown?(error: GatewayError): boolean;
  /** Texts of people, which are removed when the log quotes the gateway. Absent: the log does not quote the gateway. */
  texts?: () => readonly string[];
}

export interface AskDeps {
  limits: GatewayLimits;
  log: Logger;
  onAnswered?: ((name: Endpoint["name"], model: string) => void) | undefined;
}

/** Maximum number of calls to a route that has an alternative. A failure in `NOT_RETRIED` gets no second call. */
const ATTEMPTS_BESIDE = 2;
const NOT_RETRIED: ReadonlySet<GatewayErrorKind> = new Set(["rate-limited", "stalled"]);
const MAX_CHANGES = 12;
/** Calls that wait for the same moment start at random times within this span after it. */
const SPREAD_MS = 250;
/** If a call that tests a paused model gets no answer for this long, it asks another route. */
const PROBE_SILENCE_MS = 15_000;
/** How often a waiting call checks whether another call has ended the pause. */
const LOOK_MS = 100;

/**
 * Asks the requested route. If that route is down or at its limit, asks the alternatives, then the requested route
 * again with more retries. Retries each route after passing failures, and changes its request after a refusal. Never
 * replaces an answer that has started. Rejects with the error of the requested route, or with the signal's reason.
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
    // If the gateway is unreachable, skip its other models, because calls to them would fail too.
    if (because === "unreachable" && route.endpoint === own.endpoint) continue;
    if (isLate()) throw failure;
    const fallback = { model: route.model, isSecondGateway: route.endpoint !== own.endpoint, because };
    options.onFallback?.(fallback);
    deps.log.warn({ ...fallback, model: own.model, instead: route.model }, "asking a fallback instead");
    try {
      const asked = { ...route, form: question.toForm(route) };
      return await askRoute(deps, question, asked, { mustAsk: false, hasAlternative: true, untilMs }, signal);
    } catch (error) {
      // A refusal of this alternative does not end the search, because the second gateway can have other models.
      if (isOver(error)) throw error;
      deps.log.warn({ err: error, instead: route.model }, "the fallback did not answer");
    }
  }
  options.onFallback?.(undefined);
  if (!PASSING.has(because) || isLate()) throw failure;
  return askRoute(deps, question, own, { mustAsk: false, hasAlternative: false, untilMs }, signal);
}

interface Patience {
  mustAsk: boolean;
  /** True if another route can answer, so the call waits less for this route. */
  hasAlternative: boolean;
  /** The deadline for the first piece of the answer, in milliseconds of `performance.now()`. */
  untilMs: number;
}

/** Asks one route until it answers or no attempt is left. */
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

  /** Waits while the model is paused. Resolves to the pause if this call should test whether the pause is over. */
  async function waitForPause(): Promise<Pause | undefined> {
    for (let pause = breaker.read(model); pause !== undefined; pause = breaker.read(model)) {
      const leftMs = Math.min(budgetMs, silenceMs(false));
      if (mustAsk && attempt === 1) return pause;
      if ((pause.waitMs > leftMs || pause.waitMs === 0) && breaker.claim(model)) return pause;
      signal.throwIfAborted();
      const waitMs = Math.max(pause.waitMs, LOOK_MS);
      if (waitMs > leftMs) throw toPauseError(model, { ...pause, waitMs });
      budgetMs -= waitMs;
      // If the pause is over, another call is testing the model, and waits for that test are too short to report.
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
      // Words outside an error object can come from the model, or from any web page at this address, so the log does
      // not quote them.
      if (texts !== undefined && !error.isFormless && error.status !== undefined)
        error.logMessage += withoutTexts(error.quote, texts());
      if (hasBegun?.() === true) throw error;
      // A refusal proves that the gateway is reachable.
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
      log.debug({ err: error, model, waitMs }, "retrying a call to the gateway");
      await wait(asked === undefined ? waitMs : asked + spread(), error);
    } finally {
      watch.end();
    }
  }
}

/** A random wait from a range that doubles with each attempt, so that calls don't retry in step. */
function backoff(attempt: number, { backoffMinMs, backoffMaxMs }: GatewayLimits): number {
  const ceilingMs = Math.min(backoffMaxMs, backoffMinMs * 2 ** (attempt + 1));
  return backoffMinMs + Math.random() * Math.max(0, ceilingMs - backoffMinMs);
}

function spread(): number {
  return Math.random() * SPREAD_MS;
}

function toPauseError(model: string, { waitMs, error, isAsked }: Pause & { waitMs: number }): GatewayError {
  const subject = model === "" ? "" : ` for model ${model}`;
  const why = isAsked
    ? "asked for a pause, which lasts another"
    : "failed several times in a row and will be tried again in";
  return new GatewayError(error.kind, `The gateway ${why} ${describeSeconds(waitMs)}${subject}, so no call was made.`, {
    cause: error,
    retryAfterMs: waitMs,
    status: error.status,
    isPause: true,
  });
}

/** A shorter match with people's texts is ignored, because it is an ordinary word. */
const SHARED_CHARS = 8;
const HIDDEN = "[…]";

/** Removes parts of people's texts from the gateway's words. Ignores case and spacing. */
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
  // Positions count runs of white space as one space, because `toComparable` does.
  const shown = quote.replace(SPACES, " ");
  return Array.from({ length: shown.length }, (_, at) =>
    hidden.has(at) ? (hidden.has(at - 1) ? "" : HIDDEN) : shown.charAt(at),
  ).join("");
}

/** Calls `visit` with the start and the hash of each run of `SHARED_CHARS` characters. */
function eachRun(text: string, visit: (hash: number, at: number) => void): void {
  let hash = 0;
  for (let at = 0; at < text.length; at++) {
    // Each step shifts the 32 bits by 4, so characters before the run have no effect.
    hash = (hash << 4) ^ text.charCodeAt(at);
    if (at >= SHARED_CHARS - 1) visit(hash, at - SHARED_CHARS + 1);
  }
}

/** Matches the characters that a safe text replaces with a single space. */
const SPACES = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu;

/** Replaces the only letter that grows in lower case, because it would shift all later positions. */
function toComparable(text: string): string {
  return text.replace(SPACES, " ").replaceAll("İ", "i").toLowerCase();
}
