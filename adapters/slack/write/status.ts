import type { SlackApi } from "../api/client.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { createThrottle } from "../api/optional-calls.ts";
import type { MessagePlace } from "../ids.ts";
import type { SinkState } from "./sink-state.ts";

/** Slack removes a status after two minutes without a message. */
const RENEW_MS = 90_000;
/** How often to renew a status that nothing removes. */
const MAX_RENEWALS = 10;
const RENEW_TIMEOUT_MS = 5_000;
const WAITING = "hourglass_flowing_sand";
/**
 * Slack allows fifty reactions a minute but only twenty removals, and the bot must remove every reaction again.
 * https://docs.slack.dev/reference/methods/reactions.remove
 */
const MAX_A_MINUTE = { "reactions.add": 15, "reactions.remove": 18 } as const;

/**
 * Shows a status line under a thread: what the bot is doing while there is no text yet, or when the text doesn't show
 * it.
 */
export interface ThreadStatus {
  show(text: string, signal: AbortSignal): Promise<void>;
  /** Call this after a message was posted, because Slack then removes the status. */
  replaced(): void;
}

export interface StatusDeps {
  api: SlackApi;
  teamId: string;
  channelId: string;
  /** Slack shows a status only in threads. */
  threadTs: string | undefined;
}

export function createStatus({ api, teamId, channelId, threadTs }: StatusDeps): ThreadStatus {
  let isShown = false;
  let underWay = 0;
  let timer: NodeJS.Timeout | undefined;

  async function set(text: string, signal: AbortSignal): Promise<void> {
    underWay += 1;
    try {
      const status = text === "" ? "" : `is ${text}…`;
      await api.call(
        teamId,
        "assistant.threads.setStatus",
        { channel_id: channelId, thread_ts: threadTs, status },
        signal,
      );
      isShown = text !== "";
    } finally {
      underWay -= 1;
    }
  }

  function renew(text: string, left: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      set(text, AbortSignal.timeout(RENEW_TIMEOUT_MS)).catch(() => {});
      if (left > 1) renew(text, left - 1);
    }, RENEW_MS).unref();
  }

  return {
    async show(text, signal) {
      signal.throwIfAborted();
      clearTimeout(timer);
      if (threadTs === undefined || (text === "" && !isShown && underWay === 0)) return;
      try {
        await set(text, signal);
      } catch (error) {
        // If the response was lost, the status may be visible.
        isShown ||= text !== "" && !(error instanceof ApiError);
        throw error;
      }
      if (text !== "") renew(text, MAX_RENEWALS);
    },
    replaced() {
      clearTimeout(timer);
      // A call in flight can reach Slack after the message. Its status would then stay, so it still counts as shown.
      if (underWay === 0) isShown = false;
    },
  };
}

/** Resolves to false at the rate limit. Rejects if Slack refuses. Does nothing if the app lacks the scope. */
export type MarkWaiting = (place: MessagePlace, isWaiting: boolean, signal: AbortSignal) => Promise<boolean>;

export interface MarkWaitingDeps {
  api: SlackApi;
  state: Pick<SinkState, "supports" | "markUnsupported">;
  /** Unix milliseconds. */
  now(): number;
}

export function createMarkWaiting({ api, state, now }: MarkWaitingDeps): MarkWaiting {
  const throttle = createThrottle(now);

  return async ({ teamId, channelId, ts }, isWaiting, signal) => {
    if (!state.supports("reactions", teamId)) return true;
    const method = isWaiting ? "reactions.add" : "reactions.remove";
    const budget = `${teamId} ${method}`;
    if (!throttle.take(budget, MAX_A_MINUTE[method])) return false;
    try {
      await api.call(teamId, method, { channel: channelId, timestamp: ts, name: WAITING }, signal);
    } catch (error) {
      const code = codeOf(error);
      if (error instanceof ApiError && error.retryAfterMs !== undefined) {
        throttle.pause(budget, error.retryAfterMs);
        return false;
      }
      if (code === "missing_scope") state.markUnsupported("reactions", teamId);
      else if (code !== "already_reacted" && code !== "no_reaction") throw error;
    }
    return true;
  };
}
