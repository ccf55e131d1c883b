import type { Posted } from "../../../src/port/sink.ts";
import { codeOf, SlackApiError } from "../api/error.ts";
import type { MessagePlace } from "../ids.ts";
import type { Brought } from "./blocks.ts";
import type { Cards } from "./cards.ts";

/** A message that grows as a native stream, as far as this process knows it. */
export interface Stream {
  place: MessagePlace;
  nonce: string;
  /** What the calls that were accepted have written, in Slack's own Markdown. */
  sent: string;
  /** What they may have shown of steps. */
  cards: Cards;
  startedAtMs: number;
  /** Whether the last call was carried out is not known: nothing may be added any more. */
  isDoubtful: boolean;
  /** Somebody pressed Slack's own Stop. */
  isStopped: boolean;
}

const MAX_REMEMBERED = 2_000;
/** How long a workspace, or a channel, that does not offer something is not asked again. */
const NO_STREAMS_MS = 24 * 3_600_000;
const NO_STREAMS_HERE_MS = 3_600_000;

/** Nothing in the whole workspace streams. */
const WORKSPACE_CODES = new Set([
  "unknown_method",
  "feature_not_enabled",
  "method_deprecated",
  "not_allowed_token_type",
  "missing_scope",
]);
/** Nothing streams at this place, or to this person. */
const CHANNEL_CODES = new Set([
  "channel_type_not_supported",
  "messages_tab_disabled",
  "missing_recipient_team_id",
  "missing_recipient_user_id",
  "team_not_found",
  "user_not_found",
]);

/** What not every workspace takes. */
export type Extra = "sessions" | "cards" | "feedback buttons" | "pictures";

/** Files that Slack was told to show in a message of its own. */
export interface Shared {
  fileIds: readonly string[];
  /** Undefined until it is known. */
  ts: string | undefined;
}

/** What the replies of one process leave for each other: the next attempt at a reply is written by another sink. */
export interface Memory {
  /** Messages by the nonce they were posted with. */
  posted: Shelf<Posted>;
  /** Nonces of posts of which nobody knows whether they were carried out. */
  doubtful: Shelf<true>;
  /** Nonces of which it is known that nothing was posted with them yet. */
  unused: Shelf<true>;
  /** By the message's id. */
  streams: Shelf<Stream>;
  /** The files that came with a message, none for most; by the message's id. */
  files: Shelf<Brought>;
  /** By the place and the mark of what they were shared for. */
  shares: Shelf<Shared>;
  /** By the message's id: the nonce that its next update gives it. A stream has none before its end. */
  nonces: Shelf<string>;
  mayStream(teamId: string, channelId: string): boolean;
  /** Takes note of a refusal to begin a stream. */
  noteRefusal(teamId: string, channelId: string, error: unknown): void;
  /** The newest answer that was begun as a session, by its thread. */
  sessions: Shelf<object>;
  /** Whether a workspace takes it, as far as that is known. */
  takes(extra: Extra, teamId: string): boolean;
  noteUntaken(extra: Extra, teamId: string): void;
  /** When this process began, Unix milliseconds: what was asked before may have been answered by another. */
  readonly startedAtMs: number;
}

/** Keeps the newest ones. */
export interface Shelf<T> {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
  delete(key: string): void;
}

export function createMemory(now: () => number): Memory {
  const without = createShelf<number>();
  const isWithout = (key: string) => (without.get(key) ?? 0) > now();

  return {
    posted: createShelf(),
    doubtful: createShelf(),
    unused: createShelf(),
    streams: createShelf(),
    files: createShelf(),
    shares: createShelf(),
    nonces: createShelf(),
    sessions: createShelf(),
    mayStream: (teamId, channelId) => !isWithout(teamId) && !isWithout(`${teamId}:${channelId}`),
    noteRefusal(teamId, channelId, error) {
      const isMissing = error instanceof SlackApiError && error.status === 404;
      if (isMissing || WORKSPACE_CODES.has(codeOf(error))) without.set(teamId, now() + NO_STREAMS_MS);
      else if (CHANNEL_CODES.has(codeOf(error))) without.set(`${teamId}:${channelId}`, now() + NO_STREAMS_HERE_MS);
    },
    takes: (extra, teamId) => !isWithout(`${extra}:${teamId}`),
    noteUntaken: (extra, teamId) => without.set(`${extra}:${teamId}`, now() + NO_STREAMS_MS),
    startedAtMs: now(),
  };
}

export function createShelf<T>(): Shelf<T> {
  const kept = new Map<string, T>();
  return {
    get: (key) => kept.get(key),
    set(key, value) {
      kept.delete(key);
      kept.set(key, value);
      const [oldest] = kept.keys();
      if (kept.size > MAX_REMEMBERED && oldest !== undefined) kept.delete(oldest);
    },
    delete: (key) => void kept.delete(key),
  };
}
