import type { SinkLimits } from "../port/sink.ts";
import { describeTime } from "../settings/local-time.ts";
import { quoteName, toLine } from "../text/quote-name.ts";
import { toSource } from "../text/sources.ts";
import { truncate } from "../text/truncate.ts";
import type { Missed, MissedMessage } from "./missed.ts";
import { type Claim, isForAsker, type Summary } from "./summary.ts";

export const HOW =
  "Tell me how far back to go: `/catchup` (since your last message here), `/catchup since monday`, `/catchup since 14:00`, or `/catchup all` for every channel we're both in.";

/** Most messages to the asker that are quoted because no sentence of the model names them. */
const MAX_QUOTED = 8;
const MAX_QUOTE_CHARS = 120;
const MAX_POSTS = 3;

interface Clock {
  zone: string;
  now: number;
}

/**
 * Describes what a person missed as lines of Markdown: the bounds and what is missing, then what concerns them, then the
 * rest. Lines at the end can be left out if there is no room.
 */
export function describeCatchup(missed: Missed, { claims, summarizedFrom, problem }: Summary, clock: Clock): string[] {
  const toRef = createToRef();
  const hasPlaces = missed.places.length > 1;
  const toLines = (some: readonly Claim[]) => some.map((claim) => toClaimLine(claim, toRef, hasPlaces));
  const section = (title: string, lines: readonly string[]) => (lines.length === 0 ? [] : [`**${title}**`, ...lines]);
  const own = claims.filter(isForAsker);
  const others = claims.filter((claim) => !isForAsker(claim));
  const named = new Set(own.flatMap(({ messages }) => messages));
  const unnamed = missed.messages.filter((message) => message.concernsAsker === true && !named.has(message));
  const quoted = unnamed.slice(-MAX_QUOTED);
  const more = unnamed.length - quoted.length;
  const isEmpty = missed.messages.length > 0 && claims.length === 0 && problem === undefined;
  return [
    `**${describeBounds(missed, clock)}**`,
    ...(problem === undefined ? [] : [`_${problem}_`]),
    ...(summarizedFrom === undefined
      ? []
      : [
          `_That was too much for one summary, so this one starts at ${describeTime(summarizedFrom, clock.zone, clock.now)}._`,
        ]),
    ...missed.gaps.map((gap) => `_${gap}_`),
    ...section("For you", [
      ...toLines(own),
      ...quoted.map((message) => toQuoteLine(message, toRef)),
      ...(more > 0 ? [`- and ${count(more, "earlier message")} to you.`] : []),
    ]),
    ...section("Questions and decisions", toLines(others.filter(({ kind }) => kind !== "news"))),
    ...section("Also", toLines(others.filter(({ kind }) => kind === "news"))),
    ...(isEmpty ? ["The rest seems to be small talk."] : []),
  ];
}

/** `213 messages, 9 threads, 12 since you wrote, from Mon 1 Dec 14:02 (Europe/Berlin)` */
function describeBounds({ messages, places, sinceOwn, gaps }: Missed, { zone, now }: Clock): string {
  if (messages.length === 0) return gaps.length === 0 ? "No new messages" : "I found no new messages";
  const read = new Set(messages.map(({ place }) => place));
  const threads = new Set(messages.flatMap(({ threadId, place }) => (threadId ? [`${place.id} ${threadId}`] : [])));
  const from = messages.reduce((least, { at }) => Math.min(least, at), Infinity);
  return [
    count(messages.length, "message") + (places.length > 1 ? ` in ${count(read.size, "channel")}` : ""),
    ...(threads.size > 0 ? [count(threads.size, "thread")] : []),
    ...(sinceOwn === undefined ? [] : [`${sinceOwn} since you wrote`]),
    `from ${describeTime(from, zone, now)}`,
  ].join(", ");
}

/** Numbers the messages in the order in which they are named. */
function createToRef(): (message: MissedMessage) => string {
  const numbers = new Map<string, number>();
  return ({ messageId, link }) => {
    const url = toSource(link)?.url;
    if (url === undefined) return "";
    const number = numbers.get(messageId) ?? numbers.size + 1;
    numbers.set(messageId, number);
    return ` [[${number}]](${url})`;
  };
}

function toClaimLine({ kind, text, messages }: Claim, toRef: (message: MissedMessage) => string, hasPlaces: boolean) {
  const title = kind === "decision" ? "Decision: " : kind === "question" ? "Question: " : "";
  const where = hasPlaces && messages[0] !== undefined ? ` (${quoteName(messages[0].place.name)})` : "";
  return `- ${title}${text}${where}${messages.map(toRef).join("")}`;
}

function toQuoteLine(message: MissedMessage, toRef: (message: MissedMessage) => string): string {
  const words = truncate(toLine(message.text), MAX_QUOTE_CHARS);
  return `- ${quoteName(message.author.name)} wrote: ${quoteName(words)}${toRef(message)}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Puts lines into messages of at most the platform's length. Leaves out lines that do not fit, and says so. */
export function toPosts(lines: readonly string[], { maxLength, lengthOf }: SinkLimits): string[] {
  const posts: string[] = [];
  const rest = "_There's more, but it doesn't fit here._";
  for (const line of lines.filter((one) => lengthOf(one) <= maxLength)) {
    const last = posts.at(-1);
    const room = posts.length === MAX_POSTS ? lengthOf(`\n${rest}`) : 0;
    if (last !== undefined && lengthOf(`${last}\n${line}`) + room <= maxLength)
      posts[posts.length - 1] = `${last}\n${line}`;
    else if (posts.length < MAX_POSTS) posts.push(line);
    else return [...posts.slice(0, -1), `${last}\n${rest}`];
  }
  return posts;
}
