import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";

/** Slack takes a status away after two minutes without a message. */
const RENEW_MS = 90_000;
/** A status nobody takes away is not renewed for longer than this. */
const MAX_RENEWALS = 10;
/** Longest a renewal may take. */
const RENEW_TIMEOUT_MS = 5_000;

/** Shows under a thread what the bot is doing: before there is text, and beside text that cannot show it itself. */
export interface ThreadStatus {
  /** "" takes it away. */
  show(text: string, signal: AbortSignal): Promise<void>;
  /** A message has come, with which Slack takes the status away. */
  replaced(): void;
}

export interface StatusDeps {
  api: SlackApi;
  teamId: string;
  channelId: string;
  /** There is no status outside threads. */
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
        // Without an answer it may be shown.
        isShown ||= text !== "" && !(error instanceof SlackApiError);
        throw error;
      }
      if (text !== "") renew(text, MAX_RENEWALS);
    },
    replaced() {
      clearTimeout(timer);
      // One that is under way may come after the message, and would stay.
      if (underWay === 0) isShown = false;
    },
  };
}
