import { isUncertain, SlackApiError } from "./api/error.ts";
import type { SlackApi } from "./api.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { Memory } from "./memory.ts";

const CALL_TIMEOUT_MS = 5_000;

/**
 * Tells Slack that an answer is being written in a thread, for which it shows a Stop of its own: a stream has no
 * button of ours until it is over. Best effort, and never waited for.
 */
export interface Session {
  begin(): void;
  /** The answer has its end. */
  end(): void;
}

export interface SessionDeps {
  api: SlackApi;
  memory: Memory;
  place: ReplyPlace;
}

export function createSession({ api, memory, place }: SessionDeps): Session {
  const { teamId, channelId, threadTs } = place;
  let isOpen = false;
  /** What was said last is heard last. */
  let saying: Promise<void> = Promise.resolve();

  async function say(status: "processing" | "active"): Promise<void> {
    if (!memory.hasSessions(teamId)) return;
    try {
      const args = { channel_id: channelId, thread_ts: threadTs, status };
      await api.call(teamId, "agents.sessions.setStatus", args, AbortSignal.timeout(CALL_TIMEOUT_MS));
    } catch (error) {
      // An app that is no agent in its settings has no sessions.
      const isRefused = error instanceof SlackApiError && error.retryAfterMs === undefined && !isUncertain(error);
      if (isRefused) memory.noteNoSessions(teamId);
    }
  }

  return {
    begin() {
      isOpen = true;
      saying = saying.then(() => say("processing"));
    },
    end() {
      if (isOpen) saying = saying.then(() => say("active"));
      isOpen = false;
    },
  };
}
