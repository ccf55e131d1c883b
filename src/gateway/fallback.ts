import type { Logger } from "pino";
import type { ChatCompletionChunk } from "./chunks.ts";
import type { CallOptions, Gateway } from "./client.ts";
import { GatewayError, type GatewayErrorKind, isUndrawn } from "./errors.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { PASSING } from "./retry.ts";

/** The account is used up, or this gateway cannot do what was asked: another one may. */
const ELSEWHERE_STATUSES: ReadonlySet<number | undefined> = new Set([402, 501, 505]);
/** Gateways say by this that an account has used up what it paid for. */
const USED_UP_CODE = /quota|balance|credit|billing/i;
/** A picture that may have been drawn, and paid for, is not drawn elsewhere as well. */
const NOT_DRAWN: ReadonlySet<GatewayErrorKind> = new Set(["unreachable", "rate-limited", "overloaded"]);

export interface FallbackOptions {
  first: Gateway;
  /** Asked for the same model, and for the fallback model where it does not give that. */
  second: Gateway | undefined;
  /** Asked in place of every other model for conversations. */
  fallbackModel: string | undefined;
  log: Logger;
}

interface Route {
  gateway: Gateway;
  model: string;
}

/** One request, which may be asked of several. */
interface Request<T> {
  model: string;
  detours: readonly Route[];
  options: CallOptions;
  ask(route: Route, options: CallOptions): Promise<T>;
  /** True where somebody else may answer after this failure. */
  isDown(error: GatewayError): boolean;
  /** True once nobody else may answer. */
  isOver(): boolean;
  /** True when there is no time left to ask anybody. */
  isLate(): boolean;
}

/**
 * Asks another model, then another gateway, while the requested one is down or at its limit; then the requested one
 * again, patiently. An answer that has begun is never replaced. Errors are those of the requested one.
 */
export function withFallbacks({ first, second, fallbackModel, log }: FallbackOptions): Gateway {
  function toDetours(model: string, { mayAsk = () => true }: CallOptions): Route[] {
    const other = fallbackModel !== undefined && mayAsk(fallbackModel) ? fallbackModel : model;
    const models = [...new Set([model, other])];
    const gateways = [first, ...(second === undefined ? [] : [second])];
    return gateways.flatMap((gateway) => models.map((name) => ({ gateway, model: name }))).slice(1);
  }

  async function askInTurn<T>({ model, detours, options, ask, ...request }: Request<T>): Promise<T> {
    const { isDown, isOver, isLate } = request;
    const own = { gateway: first, model };
    const [failure, answer] = await attempt(() => ask(own, { ...options, hasAlternative: detours.length > 0 }));
    if (failure === undefined) return answer;
    const { error } = failure;
    if (detours.length === 0 || isOver() || !(error instanceof GatewayError) || !isDown(error)) throw error;
    const because = error.kind;
    // An unreachable gateway is not asked for another model either.
    for (const route of detours.filter(({ gateway }) => because !== "unreachable" || gateway !== first)) {
      if (isLate()) throw error;
      const detour = { model: route.model, isSecondGateway: route.gateway !== first, because };
      options.onDetour?.(detour);
      log.warn({ ...detour, model, instead: route.model }, "a fallback is asked instead");
      const [failed, given] = await attempt(() => ask(route, { ...options, mustAsk: false, hasAlternative: true }));
      if (failed === undefined) return given;
      // A refusal is no answer either: the second gateway may have other models.
      if (isOver() || !(failed.error instanceof GatewayError)) throw failed.error;
      log.warn({ err: failed.error, instead: route.model }, "the fallback does not answer");
    }
    options.onDetour?.(undefined);
    if (!PASSING.has(because) || isLate()) throw error;
    return ask(own, { ...options, mustAsk: false });
  }

  return {
    ...first,
    async streamChat(request, signal, { onChunk, ...options }) {
      // An answer must have begun by then, whoever gives it.
      const untilMs = performance.now() + DEFAULT_LIMITS.firstTokenTotalMs;
      let hasBegun = false;
      const handOver = (chunk: ChatCompletionChunk) => {
        hasBegun ||= isBeginning(chunk);
        onChunk(chunk);
      };
      await askInTurn({
        model: request.model,
        detours: toDetours(request.model, options),
        options,
        ask: ({ gateway, model }, how) => {
          const leftMs = Math.max(1, untilMs - performance.now());
          return gateway.streamChat({ ...request, model }, signal, { ...how, silenceMs: leftMs, onChunk: handOver });
        },
        isDown: ({ kind, status, type = "", code = "" }) =>
          PASSING.has(kind) ||
          kind === "malformed" ||
          ELSEWHERE_STATUSES.has(status) ||
          USED_UP_CODE.test(`${type} ${code}`),
        isOver: () => hasBegun || signal.aborted,
        isLate: () => performance.now() >= untilMs,
      });
    },
    generateImage: (request, signal, options = {}) =>
      askInTurn({
        model: request.model,
        detours: second === undefined ? [] : [{ gateway: second, model: request.model }],
        options,
        ask: ({ gateway }, how) => gateway.generateImage(request, signal, how),
        isDown: (error) => (NOT_DRAWN.has(error.kind) && isUndrawn(error)) || ELSEWHERE_STATUSES.has(error.status),
        isOver: () => signal.aborted,
        isLate: () => false,
      }),
    async close() {
      await Promise.all([first.close(), second?.close()]);
    },
  };
}

/** Text or a call of a tool: from then on the answer cannot be begun again. */
function isBeginning({ choices }: ChatCompletionChunk): boolean {
  return choices.some(({ delta }) => Boolean(delta.content || delta.tool_calls?.length));
}

async function attempt<T>(work: () => Promise<T>): Promise<[failure: undefined, result: T] | [{ error: unknown }]> {
  try {
    return [undefined, await work()];
  } catch (error) {
    return [{ error }];
  }
}
