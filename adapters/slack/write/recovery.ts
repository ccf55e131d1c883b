import { isTakenUp } from "../../../src/concurrency/fence.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { Posted } from "../../../src/port/sink.ts";
import { toAttachments } from "../api/attachments.ts";
import { isUncertain, SlackApiError } from "../api/error.ts";
import { timeOf, toFingerprint, toMessageId } from "../ids.ts";
import type { Found, ReplyPlace } from "./lookup.ts";
import type { SinkState } from "./sink-state.ts";
import type { StreamWriter } from "./stream.ts";

/** A question that came this soon after the start may have been answered by the former process: clocks differ. */
const CLOCK_SKEW_MS = 2_000;
/** A question this old may have been begun by another process that died, even if nothing says so. */
const LONG_AGO_MS = 30_000;

export interface Search {
  nonce: string;
  /** True when no earlier attempt can have used the nonce. */
  isNew: boolean;
  look(): Promise<Found | undefined>;
}

/** Keeps the same nonce from making a second message, also after a crash and after an answer that never came. */
export interface Recovery {
  /** Looks for the message posted with this nonce, if there may be one. Rejects when it must know and cannot. */
  find(search: Search, signal: AbortSignal): Promise<Posted | undefined>;
  /** Posts, and remembers how it went. */
  post(nonce: string, make: () => Promise<Posted>, signal: AbortSignal): Promise<Posted>;
}

export interface RecoveryDeps {
  place: ReplyPlace;
  state: SinkState;
  streams: Pick<StreamWriter, "endOrphan">;
  now(): number;
}

export function createRecovery({ place, state, streams, now }: RecoveryDeps): Recovery {
  const { teamId, channelId, questionTs, cameAtMs } = place;
  const askedAtMs = questionTs === undefined ? cameAtMs : timeOf(questionTs);
  const toKey = (nonce: string) => `${teamId}:${channelId}:${toFingerprint(nonce)}`;

  function whyLook({ nonce, isNew }: Search): "must" | "may" | "no" {
    if (state.doubtful.get(toKey(nonce)) === true) return "must";
    if (isNew || state.unused.get(toKey(nonce)) === true) return "no";
    if (isTakenUp()) return "must";
    if (askedAtMs === undefined) return "no";
    if (askedAtMs < state.startedAtMs + CLOCK_SKEW_MS) return "must";
    return now() - askedAtMs > LONG_AGO_MS ? "may" : "no";
  }

  /** Undefined for a message that turns out to be another one. */
  async function adopt(found: Found, nonce: string, signal: AbortSignal): Promise<Posted | undefined> {
    const messagePlace = { teamId, channelId, ts: found.ts };
    const id = toMessageId(messagePlace);
    if (found.isUnfinished) {
      const known = state.streams.get(id);
      if (known !== undefined && known.nonce !== nonce) return undefined;
      if (!(await streams.endOrphan(messagePlace, nonce, signal))) return undefined;
      state.streams.delete(id);
    }
    state.nonces.set(id, nonce);
    const attachments = toAttachments({ teamId }, found.files);
    return { id, isPartial: true, ...(attachments.length > 0 && { attachments }) };
  }

  return {
    async find(search, signal) {
      const { nonce, look } = search;
      const key = toKey(nonce);
      const known = state.posted.get(key);
      if (known !== undefined) return { ...known, isPartial: true };
      const why = whyLook(search);
      if (why === "no") return undefined;
      let found: Found | undefined;
      try {
        found = await look();
        const posted = found && (await adopt(found, nonce, signal));
        state.doubtful.delete(key);
        if (posted === undefined) state.unused.set(key, true);
        else state.posted.set(key, posted);
        return posted;
      } catch (error) {
        const mayWait = error instanceof SinkError || (error instanceof SlackApiError && isUncertain(error));
        // An app without the right to read finds nothing, however long it waits. A message that was found is not posted again.
        if (signal.aborted || ((mayWait || found !== undefined) && why === "must")) throw error;
        return undefined;
      }
    },
    async post(nonce, make, signal) {
      const key = toKey(nonce);
      try {
        const posted = await make();
        state.posted.set(key, posted);
        state.doubtful.delete(key);
        return posted;
      } catch (error) {
        const isDoubtful = signal.aborted || (error instanceof SlackApiError && isUncertain(error));
        if (isDoubtful) state.doubtful.set(key, true);
        else state.unused.set(key, true);
        throw error;
      }
    },
  };
}
