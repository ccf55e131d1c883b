import { setTimeout as sleep } from "node:timers/promises";
import type { SlackApi } from "../api/client.ts";
import { isUncertain, SlackApiError } from "../api/error.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { SinkState } from "./sink-state.ts";

const METHOD = "agents.sessions.setStatus";
/**
 * The app does not hear of Slack's Stop, so Slack shows none:
 * https://docs.slack.dev/reference/events/agent_session_stopped
 */
const NO_STOP = "missing_agent_session_stopped_event_subscription";
const CALL_TIMEOUT_MS = 5_000;
/**
 * Slack takes fifty calls a minute in a workspace, and each session has two. Ends may come at once that belong to the
 * sessions of several minutes: https://docs.slack.dev/reference/methods/agents.sessions.setStatus
 */
const MAX_BEGUN_A_MINUTE = 22;
const MAX_CALLS_A_MINUTE = 46;
const AGAIN_MS = 2_000;
/** A longer wait is not sat out: Slack ends a session by itself at some time. */
const MAX_WAIT_MS = 120_000;

/**
 * Tells Slack that an answer is being worked on in a thread, for which it shows a Stop of its own: before there is a
 * message, and for a stream, which has no button of ours until it is over. Best effort, and never waited for.
 */
export interface Session {
  /** False where Slack is known to show no Stop for this answer. */
  readonly hasStop: boolean;
  begin(): void;
  /** The answer has its end. */
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
  /** Identifies the answer that is being written. */
  const own = {};
  let isOpen = false;
  /** "hidden": nothing can be pressed; "refused": there is no session at all. */
  let stop: "offered" | "hidden" | "refused" = "offered";
  /** Keeps the calls in order. */
  let saying: Promise<void> = Promise.resolve();

  /** Resolves to the wait that Slack asks for; to undefined when it was told, or is of no use. */
  async function say(status: "processing" | "active"): Promise<number | undefined> {
    while (!state.sessionCalls.take(`call ${teamId}`, MAX_CALLS_A_MINUTE))
      await sleep(AGAIN_MS, undefined, { ref: false });
    try {
      const args = { channel_id: channelId, thread_ts: threadTs, status };
      const answer = await api.call(teamId, METHOD, args, AbortSignal.timeout(CALL_TIMEOUT_MS));
      if (answer["warning"] === NO_STOP) leaveOut("hidden");
    } catch (error) {
      stop = "hidden";
      if (error instanceof SlackApiError && error.retryAfterMs !== undefined) return error.retryAfterMs;
      // An app that is no agent in its settings has no sessions.
      if (error instanceof SlackApiError && !isUncertain(error)) leaveOut("refused");
    }
    return undefined;
  }

  function leaveOut(why: "hidden" | "refused"): void {
    stop = why;
    state.markUnsupported("sessions", teamId);
  }

  /** A session that is not ended would show a Stop that stops nothing, so its end is said once more where it must wait. */
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
