import type { SlackApi } from "../api/client.ts";
import { codeOf, SlackApiError } from "../api/error.ts";
import { createThrottle } from "../api/rate-limits.ts";
import type { MessagePlace } from "../ids.ts";
import type { SinkState } from "./sink-state.ts";

/** Put to a question that waits for its turn. */
const WAITING = "hourglass_flowing_sand";
/**
 * Slack takes fifty reactions a minute, but only twenty removals, and every mark has to be removed again.
 * https://docs.slack.dev/reference/methods/reactions.remove
 */
const MAX_A_MINUTE = { "reactions.add": 15, "reactions.remove": 18 } as const;

/**
 * See `ReplySink.markWaiting`. Rejects where Slack refuses it; an app without the scope for it shows nothing, and is not
 * asked again.
 */
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
      if (error instanceof SlackApiError && error.retryAfterMs !== undefined) {
        throttle.pause(budget, error.retryAfterMs);
        return false;
      }
      if (code === "missing_scope") state.markUnsupported("reactions", teamId);
      else if (code !== "already_reacted" && code !== "no_reaction") throw error;
    }
    return true;
  };
}
