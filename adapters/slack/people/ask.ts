import type { Logger } from "pino";
import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";

const CALL_MS = 10_000;
/** Below what Slack allows: in a large workspace every thread brings people whom nobody here knows yet. */
const MAX_A_MINUTE = { "users.info": 80, "conversations.info": 40 };
const MINUTE_MS = 60_000;

export interface AskDeps {
  api: Pick<SlackApi, "call">;
  log: Logger;
  now(): number;
}

/** Looks something up. Resolves to undefined where Slack does not tell, or wants no such calls at the moment. Never rejects. */
export type Ask = <T>(
  workspace: Workspace,
  method: keyof typeof MAX_A_MINUTE,
  args: Body,
  read: (found: Body) => T,
) => Promise<T | undefined>;

export function createAsk({ api, log, now }: AskDeps): Ask {
  /** By workspace and method: when it was called of late, and until when Slack wants no more. */
  const askedAt = new Map<string, number[]>();
  const paused = new Map<string, number>();

  /** Notes a call, unless there were too many. */
  function mayAsk(budget: string, limit: number): boolean {
    const recent = (askedAt.get(budget) ?? []).filter((atMs) => atMs > now() - MINUTE_MS);
    const isAllowed = recent.length < limit && (paused.get(budget) ?? 0) <= now();
    askedAt.set(budget, isAllowed ? [...recent, now()] : recent);
    return isAllowed;
  }

  return async ({ teamId }, method, args, read) => {
    const budget = `${teamId} ${method}`;
    if (!mayAsk(budget, MAX_A_MINUTE[method])) return undefined;
    try {
      return read(await api.call(teamId, method, args, AbortSignal.timeout(CALL_MS)));
    } catch (error) {
      const pauseMs = error instanceof SlackApiError ? error.retryAfterMs : undefined;
      if (pauseMs !== undefined) paused.set(budget, now() + pauseMs);
      log.debug({ err: error, method }, "Something about people could not be looked up.");
      return undefined;
    }
  };
}
