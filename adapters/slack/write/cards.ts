import type { Step } from "../../../src/port/sink.ts";
import { describeTime, foldSteps } from "../../../src/port/steps.ts";
import { type Source, toLabel } from "../../../src/text/sources.ts";
import { toSlackMarkdown } from "./markdown.ts";

/** Most cards in one message. With their titles, they fit next to a full text in a streamed message. */
export const MAX_CARDS = 8;
/** In bytes of UTF-8. */
const MAX_TITLE_BYTES = 100;
/** The id of the card for all steps beyond `MAX_CARDS`. */
const REST_ID = "rest";
const REST_TITLE = "More steps";
const MAX_SOURCE_CHARS = 256;
/** Maximum bytes of all sources on one message's cards, because they count towards the message's length. */
const MAX_SOURCE_BYTES = 600;

export interface TaskCard {
  title: string;
  status: "in_progress" | "complete" | "error";
  sources?: readonly CardSource[];
}

/** https://docs.slack.dev/reference/block-kit/block-elements/url-source-element */
interface CardSource {
  type: "url";
  url: string;
  text: string;
}

/** The cards by their steps' ids, in the order of the steps. */
export type TaskCards = ReadonlyMap<string, TaskCard>;

export type Chunk = Readonly<Record<string, string | readonly CardSource[]>>;

const STATUSES = { running: "in_progress", done: "complete", failed: "error" } as const satisfies Record<
  Step["state"],
  TaskCard["status"]
>;

/** The cards in a message after these steps. Closes earlier cards that are not among the steps. */
export function toCards(steps: readonly Step[], before: TaskCards): TaskCards {
  const cards = new Map(closeCards(before));
  let rest: TaskCard["status"] | undefined;
  let room = MAX_SOURCE_BYTES;
  const fits = ({ url, text }: CardSource) =>
    url.length <= MAX_SOURCE_CHARS && (room -= Buffer.byteLength(url + text)) >= 0;
  for (const step of steps) {
    const { id, title } = step;
    const status = STATUSES[step.state];
    const isOwn = cards.has(id) || cards.size - (cards.has(REST_ID) ? 1 : 0) < MAX_CARDS;
    const sources = (step.sources ?? []).map(toCardSource).filter(fits);
    const card = { title: toTitle(title, describeTime(step)), status, ...(sources.length > 0 && { sources }) };
    if (isOwn) cards.set(id, card);
    else if (rest === undefined || status === "in_progress") rest = status;
  }
  if (rest !== undefined) cards.set(REST_ID, { title: REST_TITLE, status: rest });
  return cards;
}

/** Closes all cards. Slack shows a card as failed if it is open when its stream ends. */
export function closeCards(cards: TaskCards): TaskCards {
  const close = (card: TaskCard): TaskCard => (card.status === "in_progress" ? { ...card, status: "complete" } : card);
  return new Map([...cards].map(([id, card]) => [id, close(card)]));
}

/** The cards after a call with an uncertain outcome. The cards that the call changed count as open. */
export function doubtCards(before: TaskCards, after: TaskCards): TaskCards {
  const doubt = ([id, card]: [string, TaskCard]): [string, TaskCard] =>
    isSame(before.get(id), card) ? [id, card] : [id, { ...card, status: "in_progress" }];
  return new Map([...after].map(doubt));
}

/**
 * Returns the chunks that turn the cards `before` into the cards `after`. Contains only titles, statuses and, once per
 * card, the sources, because Slack appends other fields to their former value.
 */
export function toTaskChunks(before: TaskCards, after: TaskCards): Chunk[] {
  return [...after].flatMap(([id, { title, status, sources }]): Chunk[] => {
    if (isSame(before.get(id), { title, status })) return [];
    const isNew = sources !== undefined && before.get(id)?.sources === undefined;
    return [{ type: "task_update", id, title, status, ...(isNew && { sources }) }];
  });
}

function toCardSource(source: Source): CardSource {
  return { type: "url", url: source.url, text: toLabel(source) };
}

export function toFold(steps: readonly Step[]): Chunk[] {
  return steps.length === 0 ? [] : [{ type: "plan_update", title: foldSteps(steps) }];
}

function isSame(before: TaskCard | undefined, after: TaskCard): boolean {
  return before?.title === after.title && before.status === after.status;
}

/** The arguments of a call that adds to a stream. Slack accepts either plain text or chunks, but not both. */
export function toAddition(text: string, tasks: readonly Chunk[]): Readonly<Record<string, unknown>> {
  if (tasks.length === 0) return text === "" ? {} : { markdown_text: text };
  return { chunks: [...(text === "" ? [] : [{ type: "markdown_text", text }]), ...tasks] };
}

function toTitle(words: string, time: string): string {
  const safe = toSlackMarkdown(words);
  const title = safe.slice(0, 1).toUpperCase() + safe.slice(1);
  const bytes = Buffer.from(title);
  const took = time === "" ? "" : `, ${time}`;
  if (bytes.length + took.length <= MAX_TITLE_BYTES) return title + took;
  const end = `…${took}`;
  const kept = bytes.subarray(0, MAX_TITLE_BYTES - Buffer.byteLength(end)).toString();
  return kept.replace(/\uFFFD+$/, "") + end;
}
