import { setTimeout as sleep } from "node:timers/promises";
import type { ReadBody } from "./body.ts";
import type { Fault, FaultQueue } from "./faults.ts";
import type { CountedCall, Limits } from "./limits.ts";
import { Refusal, refuse } from "./refusals.ts";
import type { LoggedRequest } from "./request-log.ts";
import type { Match, Reply } from "./routes.ts";
import type { Violations } from "./violations.ts";

/** The error code for an expired interaction token, which is another kind of violation. */
const EXPIRED_TOKEN = 50027;

export interface Incoming {
  match: Match;
  authorization: string;
  query: URLSearchParams;
  body: ReadBody;
  entry: LoggedRequest;
  /** Aborts when the caller disconnects or the simulator closes. */
  signal: AbortSignal;
}

/** Undefined if the connection is reset. */
export type Outcome = (Reply & { headers?: Readonly<Record<string, string>> }) | undefined;

export interface DispatcherDeps {
  limits: Limits;
  faults: FaultQueue;
  violations: Violations;
  /** Length of a round trip: half of it passes before a call is counted, and half after it is executed. */
  latencyMs: number;
  isToken(token: string): boolean;
}

/**
 * Matches a bot token. A wrong token comes from a bot of an earlier simulator on this port, so the call fails but
 * counts as no violation.
 */
const ANOTHER_TOKEN = /^Bot [\w-]+\.[\w-]+\.[\w-]+$/;

const POST = "POST /channels/:channel/messages";

/** Handles a call in Discord's order: checks the token and the rate limit, then executes it. */
export function createDispatcher({ limits, faults, violations, latencyMs, isToken }: DispatcherDeps) {
  const editing = new Map<string, number>();

  async function dispatch(incoming: Incoming): Promise<Outcome> {
    const { match, entry } = incoming;
    const { fault, slowMs } = faults.take(match.route.route);
    entry.isInjected = fault !== undefined;
    const finish = beginEdit(match);
    // If the caller has disconnected, its call is no longer in flight.
    incoming.signal.addEventListener("abort", finish, { once: true });
    try {
      await sleep(latencyMs / 2 + slowMs, undefined, { ref: false });
      const outcome = await judge(incoming, fault);
      await sleep(latencyMs / 2, undefined, { ref: false });
      return outcome;
    } finally {
      finish();
    }
  }

  async function judge(
    { match, authorization, query, body, entry, signal }: Incoming,
    fault: Fault | undefined,
  ): Promise<Outcome> {
    const { route, params, major } = match;
    const isBot = authorization.startsWith("Bot ") && isToken(authorization.slice("Bot ".length));
    if (route.access === "bot" && !isBot) {
      if (!ANOTHER_TOKEN.test(authorization)) {
        violations.record("invalid-request", `${route.route} came without a valid token.`);
      }
      throw refuse("unauthorized");
    }
    const call: CountedCall = { route: route.route, major, isGlobal: route.access === "bot" };
    const headers = route.isCounted === false ? {} : limits.take(call);
    if (fault !== undefined && fault.when !== "after") return await fail(fault, call, headers, signal);
    try {
      const reply = await route.handle({ params, query, body });
      if (route.route === POST) entry.madeId = String((reply.body as { id?: unknown } | undefined)?.id);
      return fault === undefined ? { ...reply, headers } : await fail(fault, call, headers, signal);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      watch(error, call);
      return { status: error.status, body: error.body, headers: { ...headers, ...error.headers } };
    }
  }

  /** Counts every real 401 and 403, because Discord bans a bot after too many of them. */
  function watch({ status, body, message }: Refusal, call: CountedCall): void {
    if (status === 403 || (status === 401 && body["code"] !== EXPIRED_TOKEN)) {
      violations.record("invalid-request", `${call.route} was refused with ${status}: ${message}.`);
    }
    if (status === 429) limits.block(call, Number(body["retry_after"] ?? 0) * 1000);
  }

  async function fail(
    { status, code = 0, message = "Injected by the test.", retryAfterMs = 1000, scope = "user" }: Fault,
    call: CountedCall,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (status === "silence") await aborted(signal);
    if (status === "silence" || status === "reset") return undefined;
    if (status !== 429) return { status, body: { message, code }, headers };
    limits.block(call, retryAfterMs);
    const seconds = retryAfterMs / 1000;
    const global = scope === "global";
    return {
      status,
      body: { message: "You are being rate limited.", retry_after: seconds, global, code },
      headers: {
        ...headers,
        "Retry-After": String(Math.ceil(seconds)),
        "X-RateLimit-Scope": scope,
        ...(global ? { "X-RateLimit-Global": "true" } : {}),
      },
    };
  }

  /**
   * Finds an edit of a message that starts before the response to the previous edit. The returned function ends the
   * edit.
   */
  function beginEdit({ route, params, major }: Match): () => void {
    const message = params["message"];
    if (!route.route.startsWith("PATCH ") || message === undefined) return () => {};
    const key = `${major} ${message}`;
    const count = editing.get(key) ?? 0;
    if (count > 0) violations.record("overlapping-edits", `Message ${message} was edited again during an edit.`);
    editing.set(key, count + 1);
    let isOpen = true;
    return () => {
      if (isOpen) editing.set(key, (editing.get(key) ?? 1) - 1);
      isOpen = false;
    };
  }

  return dispatch;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
