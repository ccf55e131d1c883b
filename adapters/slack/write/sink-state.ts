import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Posted } from "../../../src/port/sink.ts";
import { createThrottle, type Throttle } from "../api/rate-limits.ts";
import type { MessagePlace } from "../ids.ts";
import type { MessageFiles } from "./blocks.ts";
import type { TaskCards } from "./cards.ts";

const MAX_REMEMBERED = 2_000;
/** A workspace, or a channel, that lacks a feature is not asked for it again for this long. */
const WORKSPACE_PAUSE_MS = 24 * 3_600_000;
const CHANNEL_PAUSE_MS = 3_600_000;

/** Features that not every workspace supports. */
export type Feature = "streams" | "sessions" | "cards" | "feedback buttons" | "pictures" | "reactions";

/** Files that Slack was told to show in a message of its own. */
export interface Shared {
  fileIds: readonly string[];
  /** Undefined until it is known. */
  ts: string | undefined;
}

/** A message that grows as a native stream, as far as this process knows it. */
export interface Stream {
  place: MessagePlace;
  nonce: string;
  /** The right to write under which it was begun. Under another one, others may have written it since, and ended it. */
  right: string;
  /** The text that accepted calls have written, in Slack's own Markdown. */
  sent: string;
  /** The cards that they may have shown. */
  cards: TaskCards;
  startedAtMs: number;
  /** The last call may or may not have been carried out: nothing may be added any more. */
  isDoubtful: boolean;
  /** Somebody pressed Slack's own Stop. */
  isStopped: boolean;
}

/** State that the replies of one process share: the next attempt at a reply is written by another sink. */
export interface SinkState {
  /** Messages by the nonce they were posted with. */
  posted: Map<string, Posted>;
  /** Nonces of posts that may or may not have been carried out. */
  doubtful: Map<string, true>;
  /** Nonces with which certainly nothing was posted yet. */
  unused: Map<string, true>;
  /** Keyed by the message's id. */
  streams: Map<string, Stream>;
  /** The files that came with a message, none for most; by the message's id. */
  files: Map<string, MessageFiles>;
  /** Keyed by the place and a fingerprint of the nonce. */
  shares: Map<string, Shared>;
  /** The nonce that a message's next update gives it, by the message's id. A stream has none before its end. */
  nonces: Map<string, string>;
  /** The newest answer that was begun as a session, by its thread. */
  sessions: Map<string, object>;
  /** Calls that begin and end sessions, by workspace. */
  sessionCalls: Throttle;
  /** False for a while after a workspace, or a channel in it, was found not to support a feature. */
  supports(feature: Feature, teamId: string, channelId?: string): boolean;
  /** In one channel of the workspace where one is named. */
  markUnsupported(feature: Feature, teamId: string, channelId?: string): void;
  /** The start of this process, Unix milliseconds: another process may have answered earlier questions. */
  readonly startedAtMs: number;
}

export function createSinkState(now: () => number): SinkState {
  const unsupportedUntil = new BoundedMap<string, number>(MAX_REMEMBERED);
  const isUnsupported = (...key: string[]) => (unsupportedUntil.get(key.join(":")) ?? 0) > now();

  return {
    posted: new BoundedMap(MAX_REMEMBERED),
    doubtful: new BoundedMap(MAX_REMEMBERED),
    unused: new BoundedMap(MAX_REMEMBERED),
    streams: new BoundedMap(MAX_REMEMBERED),
    files: new BoundedMap(MAX_REMEMBERED),
    shares: new BoundedMap(MAX_REMEMBERED),
    nonces: new BoundedMap(MAX_REMEMBERED),
    sessions: new BoundedMap(MAX_REMEMBERED),
    sessionCalls: createThrottle(now),
    supports: (feature, teamId, channelId = "") =>
      !isUnsupported(feature, teamId, "") && !isUnsupported(feature, teamId, channelId),
    markUnsupported(feature, teamId, channelId = "") {
      const pauseMs = channelId === "" ? WORKSPACE_PAUSE_MS : CHANNEL_PAUSE_MS;
      unsupportedUntil.set([feature, teamId, channelId].join(":"), now() + pauseMs);
    },
    startedAtMs: now(),
  };
}
