import { mapBounded } from "../concurrency/deadlines.ts";
import { toFreshLookups } from "../concurrency/shared-lookups.ts";
import type { Actor } from "../port/catalogue.ts";
import { SearchProblem } from "../port/errors.ts";
import type { ReadablePlace, RecentMessage } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import { quoteName, toLine } from "../text/quote-name.ts";
import type { Wish } from "./wish.ts";

const MAX_PLACES = 10;
/** Most messages of a channel itself, and of each of its threads. */
const MAX_MESSAGES = 1_000;
/** Longest look back for the asker's own last message. */
const LOOK_BACK_MS = 7 * 86_400_000;
const READS_AT_ONCE = 3;
/** Longest reading of all channels. A command has two minutes, and the summary needs the rest. */
const READ_MS = 45_000;

const NO_CHANNELS = "There's nothing to catch up on here: it's just the two of us.";
const ALONE =
  "Only the two of us talk here, so you missed nothing. Use `/catchup` in a channel, or `/catchup all` for every channel we're both in.";
const NO_SHARED = "I couldn't find a channel we're both in.";
const UNSURE = "I left out a channel or a thread, because I couldn't confirm again that you can open it.";
const NOT_ALLOWED = "I can't catch you up here, because I couldn't confirm that you have access to this conversation.";
const FAILED = "I couldn't read it.";
const DENIED = "I left it out, because my rules don't let the model read it.";

export interface MissedMessage extends RecentMessage {
  place: ReadablePlace;
}

export interface Missed {
  places: readonly ReadablePlace[];
  /** Oldest first within a place. */
  messages: readonly MissedMessage[];
  /** The messages after the asker's newest one in all these places; absent if the messages start there anyway. */
  sinceOwn?: number;
  /** Sentences for people about missing messages. */
  gaps: readonly string[];
}

export interface Asker {
  by: Actor;
  /** Messages from this time on are not read, Unix milliseconds. */
  until: number;
  /** True if the policy lets the model read this place. */
  mayAsk(place: ReadablePlace): boolean;
}

type MissedDeps = Pick<Services, "adapterOf" | "log">;

/** The messages and gaps of one channel. */
interface Found {
  place: ReadablePlace;
  messages: readonly RecentMessage[];
  gaps: readonly string[];
}

/**
 * Reads the messages that a person asks for, in places that they can open both before and after the reading. Resolves
 * to a sentence for them if no such place exists.
 */
export async function readMissed(
  deps: MissedDeps,
  wish: Wish,
  { by, until, mayAsk }: Asker,
  signal: AbortSignal,
): Promise<Missed | string> {
  const { log, adapterOf } = deps;
  const { readRecent } = adapterOf(by.reply.platform);
  const listed = await listOpen(deps, wish, { by, mayAsk }, signal);
  if (typeof listed === "string" || readRecent === undefined) return typeof listed === "string" ? listed : NO_CHANNELS;
  const { since } = wish;
  const fromOwn = since === undefined;
  const range = { since: since ?? until - LOOK_BACK_MS, until, fromOwn, maxMessages: MAX_MESSAGES };
  const reading = AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);

  async function read(place: ReadablePlace): Promise<Found> {
    try {
      const { messages, gaps } = await readRecent!(place.id, range, by, reading);
      const distinct = new Map(messages.map((message) => [message.messageId, message]));
      return { place, messages: [...distinct.values()], gaps };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SearchProblem) return { place, messages: [], gaps: [error.message] };
      log.warn({ err: error, placeId: place.id }, "a channel could not be read");
      return { place, messages: [], gaps: [FAILED] };
    }
  }

  const allowed = listed.filter(mayAsk);
  const found = await mapBounded(allowed.slice(0, MAX_PLACES), READS_AT_ONCE, read);
  for (const place of listed) if (!mayAsk(place)) found.push({ place, messages: [], gaps: [DENIED] });
  const isOpen = await findOpen(deps, found.flatMap(toRights), by, toFreshLookups(signal));
  const shown = found
    .filter(({ place }) => isOpen(place.id))
    .map((one) => ({ ...one, messages: one.messages.filter(({ privateId }) => isOpen(privateId ?? one.place.id)) }));
  const isWhole = found.flatMap(toRights).every(isOpen);
  return toMissed(shown, { fromOwn, authorId: by.author.id }, [
    ...(allowed.length > MAX_PLACES ? [`We're both in more channels; I read only ${MAX_PLACES} of them.`] : []),
    ...(isWhole ? [] : [UNSURE]),
  ]);
}

/** True if the person can still open everything that was read. */
export async function isStillOpen(
  deps: MissedDeps,
  { places, messages }: Pick<Missed, "places" | "messages">,
  by: Actor,
  signal: AbortSignal,
): Promise<boolean> {
  const rights = [...places.map(({ id }) => id), ...messages.flatMap(({ privateId }) => privateId ?? [])];
  return rights.every(await findOpen(deps, rights, by, toFreshLookups(signal)));
}

/** The place and its private threads. */
function toRights({ place, messages }: Found): string[] {
  return [place.id, ...messages.flatMap(({ privateId }) => privateId ?? [])];
}

/** Looks up which of these places a person can open. */
async function findOpen(
  { adapterOf }: Pick<MissedDeps, "adapterOf">,
  ids: readonly string[],
  by: Actor,
  signal: AbortSignal,
): Promise<(id: string) => boolean> {
  const { mayShow } = adapterOf(by.reply.platform);
  const find = async (id: string) => ((await mayShow?.(id, by, signal)) === true ? [id] : []);
  const open = new Set((await mapBounded([...new Set(ids)], READS_AT_ONCE, find)).flat());
  return (id) => open.has(id);
}

/**
 * Lists places that the asker can open, their channel first, until there are more than can be read. Resolves to a
 * sentence for the asker if they can open none.
 */
async function listOpen(
  deps: MissedDeps,
  { which }: Wish,
  { by, mayAsk }: Pick<Asker, "by" | "mayAsk">,
  signal: AbortSignal,
): Promise<readonly ReadablePlace[] | string> {
  const { listReadable } = deps.adapterOf(by.reply.platform);
  if (listReadable === undefined) return NO_CHANNELS;
  const isHere = ({ channelId }: ReadablePlace) => channelId === by.reply.channelId;
  try {
    const places = await listReadable(which, by, signal);
    if (places.length === 0) return which === "all" ? NO_SHARED : ALONE;
    const open: ReadablePlace[] = [];
    const waiting = places.toSorted((one, other) => Number(isHere(other)) - Number(isHere(one)));
    while (waiting.length > 0 && open.filter(mayAsk).length <= MAX_PLACES) {
      const some = waiting.splice(0, READS_AT_ONCE);
      const ids = some.map(({ id }) => id);
      const isOpen = await findOpen(deps, ids, by, signal);
      open.push(...some.filter(({ id }) => isOpen(id)));
    }
    if (open.length > 0) return open;
    return which === "all" ? NO_SHARED : NOT_ALLOWED;
  } catch (error) {
    if (error instanceof SearchProblem) return error.message;
    throw error;
  }
}

/** Leaves out the bot's own messages and empty ones. If wished, each place starts after the asker's newest message. */
function toMissed(
  found: readonly Found[],
  { fromOwn, authorId }: { fromOwn: boolean; authorId: string },
  gaps: readonly string[],
): Missed {
  const newestOwn = ({ messages }: Pick<Found, "messages">) =>
    messages.reduce((newest, { at, author }) => (author.id === authorId ? Math.max(newest, at) : newest), -Infinity);
  const unknown = found.filter((one) => fromOwn && one.gaps.length === 0 && newestOwn(one) === -Infinity);
  const messages = found.flatMap((one) => {
    const start = fromOwn ? newestOwn(one) : -Infinity;
    return one.messages
      .filter(({ text, by, at }) => by !== "bot" && toLine(text) !== "" && at > start)
      .toSorted((left, right) => left.at - right.at)
      .map((message) => ({ ...message, place: one.place }));
  });
  const own = Math.max(...found.map(newestOwn));
  const sinceOwn = messages.filter(({ at }) => at > own).length;
  return {
    places: found.map(({ place }) => place),
    messages,
    ...(!fromOwn && own !== -Infinity && { sinceOwn }),
    gaps: [
      ...gaps,
      ...(unknown.length > 0 ? [describeUnknown(unknown.map(({ place }) => place))] : []),
      ...describeGaps(found),
    ],
  };
}

/** Each sentence once, with the names of its channels if there are several. */
function describeGaps(found: readonly Found[]): string[] {
  const sentences = [...new Set(found.flatMap(({ gaps }) => gaps))];
  if (found.length === 1) return sentences;
  return sentences.map((sentence) => {
    const places = found.filter(({ gaps }) => gaps.includes(sentence)).map(({ place }) => place);
    return `${toNames(places)}: ${sentence}`;
  });
}

function describeUnknown(places: readonly ReadablePlace[]): string {
  return `You wrote nothing in ${toNames(places)} in the last 7 days, so I went back 7 days.`;
}

function toNames(places: readonly ReadablePlace[]): string {
  return places.map(({ name }) => quoteName(name)).join(", ");
}
