import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Posted } from "../../../src/port/sink.ts";
import { createThrottle, type Throttle } from "../api/optional-calls.ts";
import type { MessagePlace } from "../ids.ts";
import type { TaskCards } from "./cards.ts";
import type { MessageFiles } from "./draft.ts";

const MAX_REMEMBERED = 2_000;
const WORKSPACE_PAUSE_MS = 24 * 3_600_000;
const CHANNEL_PAUSE_MS = 3_600_000;

export type Feature = "streams" | "sessions" | "cards" | "feedback buttons" | "pictures" | "reactions";

/** The files that Slack was asked to show in a separate message. */
export interface Shared {
  fileIds: readonly string[];
  ts: string | undefined;
}

/** A message that grows as a native stream, as this process knows it. */
export interface Stream {
  place: MessagePlace;
  nonce: string;
  /** The fence that started the stream. Under a later fence, another process may have continued and ended it. */
  right: string;
  /** The text from the accepted calls, in Slack's Markdown. */
  sent: string;
  cards: TaskCards;
  startedAtMs: number;
  /** True if the outcome of the last call is unknown, so that nothing can be added. */
  isDoubtful: boolean;
  /** True if a person pressed Slack's own Stop button. */
  isStopped: boolean;
}

/** The state that all replies of a process share, because the next attempt at a reply uses another sink. */
export interface SinkState {
  /** Messages by the nonce of their post. */
  posted: Map<string, Posted>;
  /** Nonces of posts with an unknown outcome. */
  doubtful: Map<string, true>;
  /** Nonces that have certainly posted nothing yet. */
  unused: Map<string, true>;
  streams: Map<string, Stream>;
  /** The files that were posted with a message, usually none, by the message's id. */
  files: Map<string, MessageFiles>;
  /** Keyed by the channel, the thread and a fingerprint of the nonce. */
  shares: Map<string, Shared>;
  /** The nonce that a message's next update gives it, by the message's id. A stream has no nonce until its end. */
  nonces: Map<string, string>;
  /** The newest answer that started a session, by its thread. */
  sessions: Map<string, object>;
  /** Calls that start and end sessions, by workspace. */
  sessionCalls: Throttle;
  /** False for a while after a workspace, or a channel in it, turned out not to support a feature. */
  supports(feature: Feature, teamId: string, channelId?: string): boolean;
  /** With a channel, applies to that channel only. */
  markUnsupported(feature: Feature, teamId: string, channelId?: string): void;
  /** When this process started, in Unix milliseconds. Another process may have answered earlier questions. */
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
