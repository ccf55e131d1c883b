import { SinkError } from "../../../src/port/errors.ts";
import type { Right } from "../../../src/port/right.ts";
import type { Posted } from "../../../src/port/sink.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import { toAttachments } from "../api/files.ts";
import { timeOf, toFingerprint, toMessageId } from "../ids.ts";
import type { Found, ReplyPlace } from "./lookup.ts";
import type { SinkState } from "./sink-state.ts";
import type { StreamWriter } from "./stream.ts";

/** Slack's clock and this machine's can differ by this much. */
const CLOCK_SKEW_MS = 2_000;
/** Another process may have answered a question of this age before it died, even if nothing shows it. */
const LONG_AGO_MS = 30_000;

export interface Search {
  nonce: string;
  /** True if no earlier attempt can have used the nonce. */
  isNew: boolean;
  look(): Promise<Found | undefined>;
}

/** Keeps a nonce from creating a second message, even after a crash or a lost response. */
export interface Recovery {
  /** Looks for the message with this nonce, unless none can exist. Rejects if a necessary look-up fails. */
  find(search: Search, signal: AbortSignal): Promise<Posted | undefined>;
  post(nonce: string, make: () => Promise<Posted>, signal: AbortSignal): Promise<Posted>;
}

export interface RecoveryDeps {
  right: Right;
  place: ReplyPlace;
  state: SinkState;
  streams: Pick<StreamWriter, "endOrphan">;
  now(): number;
}

export function createRecovery({ right, place, state, streams, now }: RecoveryDeps): Recovery {
  const { teamId, channelId, questionTs, cameAtMs } = place;
  const askedAtMs = questionTs === undefined ? cameAtMs : timeOf(questionTs);
  const toKey = (nonce: string) => `${teamId}:${channelId}:${toFingerprint(nonce)}`;

  function whyLook({ nonce, isNew }: Search): "must" | "may" | "no" {
    if (state.doubtful.get(toKey(nonce)) === true) return "must";
    if (isNew || state.unused.get(toKey(nonce)) === true) return "no";
    if (right.isResumed) return "must";
    if (askedAtMs === undefined) return "no";
    if (askedAtMs < state.startedAtMs + CLOCK_SKEW_MS) return "must";
    return now() - askedAtMs > LONG_AGO_MS ? "may" : "no";
  }

  /** Resolves to undefined if the found message belongs to another post. */
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
        const mayWait = error instanceof SinkError || (error instanceof ApiError && isUncertain(error));
        // An app without permission to read finds nothing, however long it waits, so it posts. A message that was found
        // is never posted again.
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
        const isDoubtful = signal.aborted || (error instanceof ApiError && isUncertain(error));
        if (isDoubtful) state.doubtful.set(key, true);
        else state.unused.set(key, true);
        throw error;
      }
    },
  };
}
