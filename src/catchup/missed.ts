import { mapBounded } from "../concurrency/deadlines.ts";
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
/** Longest reading of all channels. A command may take two minutes, and the summary needs the rest. */
const READ_MS = 45_000;

const NO_CHANNELS = "There's nothing to catch up on here: it's just the two of us.";
const ALONE =
  "Only the two of us talk here, so you missed nothing. Use `/catchup` in a channel, or `/catchup all` for every channel we're both in.";
const NO_SHARED = "I couldn't find a channel we're both in.";
const UNSURE = "I left out a channel, because I couldn't confirm again that you can open it.";
const NOT_ALLOWED = "I can't catch you up here, because I couldn't confirm that you have access to this conversation.";

export interface MissedMessage extends RecentMessage {
  place: ReadablePlace;
}

export interface Missed {
  places: readonly ReadablePlace[];
  /** Oldest first within a place. */
  messages: readonly MissedMessage[];
  /** The messages after the asker's own newest one in its place; absent if they start there anyway. */
  sinceOwn?: number;
  /** Sentences for people about what is missing. */
  gaps: readonly string[];
}

export interface Asker {
  by: Actor;
  /** Messages from this time on are not read, Unix milliseconds. */
  until: number;
}

/**
 * Reads what a person asks for, in places that they can open when the reading starts and still when it ends. Resolves to
 * a sentence for them if there is nothing to read.
 */
export async function readMissed(
  { adapterOf, log }: Pick<Services, "adapterOf" | "log">,
  { which, since }: Wish,
  { by, until }: Asker,
  signal: AbortSignal,
): Promise<Missed | string> {
  const adapter = adapterOf(by.reply.platform);
  const { listReadable, readRecent, mayShow } = adapter;
  if (listReadable === undefined || readRecent === undefined || mayShow === undefined) return NO_CHANNELS;
  const mayOpen = async (place: ReadablePlace, signal: AbortSignal) =>
    (await mayShow(place.id, by, signal)) ? [place] : [];

  const reading = AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);

  async function read(place: ReadablePlace) {
    const range = {
      since: since ?? until - LOOK_BACK_MS,
      until,
      fromOwn: since === undefined,
      maxMessages: MAX_MESSAGES,
    };
    try {
      const { messages, gap } = await readRecent!(place.id, range, by, reading);
      const distinct = [...new Map(messages.map((message) => [message.messageId, message])).values()];
      return { place, ...cut(distinct, since === undefined, by.author.id), gaps: gap === undefined ? [] : [gap] };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SearchProblem)) log.warn({ err: error, placeId: place.id }, "a channel could not be read");
      const gap = error instanceof SearchProblem ? error.message : `I couldn't read ${quoteName(place.name)}.`;
      return { place, messages: [], own: undefined, sinceOwn: 0, gaps: [gap] };
    }
  }

  let listed: ReadablePlace[];
  try {
    listed = await listReadable(which, by, signal);
  } catch (error) {
    if (error instanceof SearchProblem) return error.message;
    throw error;
  }
  if (listed.length === 0) return which === "all" ? NO_SHARED : ALONE;
  const open: ReadablePlace[] = [];
  for (let at = 0; at < listed.length && open.length <= MAX_PLACES; at += READS_AT_ONCE) {
    const some = listed.slice(at, at + READS_AT_ONCE);
    open.push(...(await Promise.all(some.map((place) => mayOpen(place, signal)))).flat());
  }
  if (open.length === 0) return which === "all" ? NO_SHARED : NOT_ALLOWED;
  const places = open.slice(0, MAX_PLACES);
  const found = await mapBounded(places, READS_AT_ONCE, read);
  // Another signal looks everything up again: rights can end while the messages are read.
  const again = AbortSignal.any([signal]);
  const still = new Set((await mapBounded(places, READS_AT_ONCE, (place) => mayOpen(place, again))).flat());
  const shown = found.filter(({ place }) => still.has(place));
  const unknown = shown.filter(({ own, gaps }) => since === undefined && own === undefined && gaps.length === 0);
  const isFromOwn = since === undefined || shown.every(({ own }) => own === undefined);
  return {
    places: shown.map(({ place }) => place),
    messages: shown.flatMap(({ place, messages }) => messages.map((message) => ({ ...message, place }))),
    ...(!isFromOwn && { sinceOwn: shown.reduce((sum, { sinceOwn }) => sum + sinceOwn, 0) }),
    gaps: [
      ...(open.length > MAX_PLACES ? [`We're both in more channels; I read only ${MAX_PLACES} of them.`] : []),
      ...(shown.length < found.length ? [UNSURE] : []),
      ...(unknown.length > 0 ? [describeUnknown(unknown.map(({ place }) => place))] : []),
      ...new Set(shown.flatMap(({ gaps }) => gaps)),
    ],
  };
}

/** Leaves out the bot's own messages, empty ones and, if wished, everything up to the asker's own newest message. */
function cut(messages: readonly RecentMessage[], fromOwn: boolean, authorId: string) {
  const own = messages.filter(({ author }) => author.id === authorId).map(({ at }) => at);
  const newest = own.length === 0 ? undefined : Math.max(...own);
  const said = messages
    .filter(({ text, by }) => by !== "bot" && toLine(text) !== "")
    .toSorted((one, other) => one.at - other.at);
  const isAfter = ({ at }: RecentMessage) => newest === undefined || at > newest;
  const after = said.filter(isAfter);
  return { messages: fromOwn ? after : said, own: newest, sinceOwn: newest === undefined ? 0 : after.length };
}

function describeUnknown(places: readonly ReadablePlace[]): string {
  const names = places.map(({ name }) => quoteName(name)).join(", ");
  return `You wrote nothing in ${names} in the last 7 days, so I went back 7 days.`;
}
