import { setTimeout as sleep } from "node:timers/promises";
import type { SlackApi } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { SinkState } from "./sink-state.ts";

const METHOD = "agents.sessions.setStatus";
/**
 * After this error, Slack shows no Stop button, because the app does not subscribe to its event:
 * https://docs.slack.dev/reference/events/agent_session_stopped
 */
const NO_STOP = "missing_agent_session_stopped_event_subscription";
const CALL_TIMEOUT_MS = 5_000;
/**
 * Slack accepts fifty calls a minute per workspace, and each session needs two. Sessions that started over several
 * minutes can end at once: https://docs.slack.dev/reference/methods/agents.sessions.setStatus
 */
const MAX_BEGUN_A_MINUTE = 22;
const MAX_CALLS_A_MINUTE = 46;
const AGAIN_MS = 2_000;
/** The longest wait before a retry. A longer one would be useless, because Slack also ends a session. */
const MAX_WAIT_MS = 120_000;

/**
 * Makes Slack show its own Stop button while the bot works in a thread: before there is a message, and during a stream,
 * which shows the bot's own buttons only when it ends. Works in the background and ignores failures.
 */
export interface Session {
  /** False if it is known that Slack shows no Stop button for this answer. */
  readonly hasStop: boolean;
  begin(): void;
  end(): void;
}

export interface SessionDeps {
  api: SlackApi;
  state: SinkState;
  place: ReplyPlace;
}

export function createSession({ api, state, place }: SessionDeps): Session {
  const { teamId, channelId, threadTs } = place;
  const thread = `${teamId}:${channelId}:${threadTs}`;
  const own = {};
  let isOpen = false;
  /** "hidden": there is a session, but Slack shows no button. "refused": there is no session at all. */
  let stop: "offered" | "hidden" | "refused" = "offered";
  /** Keeps the calls in order. */
  let saying: Promise<void> = Promise.resolve();

  /** Resolves to the wait that Slack asks for. Undefined if the call succeeded or a retry cannot help. */
  async function say(status: "processing" | "active"): Promise<number | undefined> {
    while (!state.sessionCalls.take(`call ${teamId}`, MAX_CALLS_A_MINUTE))
      await sleep(AGAIN_MS, undefined, { ref: false });
    try {
      const args = { channel_id: channelId, thread_ts: threadTs, status };
      const answer = await api.call(teamId, METHOD, args, AbortSignal.timeout(CALL_TIMEOUT_MS));
      if (answer["warning"] === NO_STOP) leaveOut("hidden");
    } catch (error) {
      stop = "hidden";
      if (error instanceof ApiError && error.retryAfterMs !== undefined) return error.retryAfterMs;
      // An app that is not configured as an agent has no sessions.
      if (error instanceof ApiError && !isUncertain(error)) leaveOut("refused");
    }
    return undefined;
  }

  function leaveOut(why: "hidden" | "refused"): void {
    stop = why;
    state.markUnsupported("sessions", teamId);
  }

  /** Retries the end of a session after a rate limit: otherwise a Stop button would stay that stops nothing. */
  async function sayEnd(): Promise<void> {
    if (stop === "refused") return;
    const waitMs = await say("active");
    if (waitMs === undefined || waitMs > MAX_WAIT_MS) return;
    await sleep(waitMs, undefined, { ref: false });
    if (state.sessions.get(thread) === own) await say("active");
  }

  return {
    get hasStop() {
      return threadTs !== undefined && stop === "offered" && state.supports("sessions", teamId);
    },
    begin() {
      if (isOpen || threadTs === undefined || !state.supports("sessions", teamId)) return;
      if (!state.sessionCalls.take(`begin ${teamId}`, MAX_BEGUN_A_MINUTE)) {
        stop = "hidden";
        return;
      }
      isOpen = true;
      state.sessions.set(thread, own);
      saying = saying.then(async () => void (await say("processing")));
    },
    end() {
      if (isOpen) saying = saying.then(sayEnd);
      isOpen = false;
    },
  };
}
