import type { Step } from "../../../src/port/sink.ts";
import { describeTime, foldSteps } from "../../../src/port/steps.ts";
import { toSlackMarkdown } from "./markdown.ts";

/** TaskCards of one message: with their titles they take no more than what a full text leaves of a streamed message. */
export const MAX_CARDS = 8;
/** Bytes of UTF-8. */
export const MAX_TITLE_BYTES = 100;
/** Names the card of all steps beyond `MAX_CARDS`. */
const REST_ID = "rest";
const REST_TITLE = "More steps";

/** A step as a stream shows it, beside its text. */
export interface TaskCard {
  title: string;
  status: "in_progress" | "complete" | "error";
}

/** Keyed by the step's id, in the order in which the steps came. */
export type TaskCards = ReadonlyMap<string, TaskCard>;

/** A part of a call that adds to a stream. */
export type Chunk = Readonly<Record<string, string>>;

const STATUSES = { running: "in_progress", done: "complete", failed: "error" } as const satisfies Record<
  Step["state"],
  TaskCard["status"]
>;

/** The cards of a message after these steps. Earlier cards that are not among the steps are closed. */
export function toCards(steps: readonly Step[], before: TaskCards): TaskCards {
  const cards = new Map(closeCards(before));
  let rest: TaskCard["status"] | undefined;
  for (const step of steps) {
    const { id, title } = step;
    const status = STATUSES[step.state];
    const isOwn = cards.has(id) || cards.size - (cards.has(REST_ID) ? 1 : 0) < MAX_CARDS;
    if (isOwn) cards.set(id, { title: toTitle(title, describeTime(step)), status });
    else if (rest === undefined || status === "in_progress") rest = status;
  }
  if (rest !== undefined) cards.set(REST_ID, { title: REST_TITLE, status: rest });
  return cards;
}

/** Closes all cards: Slack shows a card that is open when its stream ends as failed. */
export function closeCards(cards: TaskCards): TaskCards {
  const close = (card: TaskCard): TaskCard => (card.status === "in_progress" ? { ...card, status: "complete" } : card);
  return new Map([...cards].map(([id, card]) => [id, close(card)]));
}

/** The cards after a call with an uncertain outcome: those that it was to change count as open. */
export function doubtCards(before: TaskCards, after: TaskCards): TaskCards {
  const doubt = ([id, card]: [string, TaskCard]): [string, TaskCard] =>
    isSame(before.get(id), card) ? [id, card] : [id, { ...card, status: "in_progress" }];
  return new Map([...after].map(doubt));
}

/**
 * The chunks that bring a stream from some cards to others. They carry the title and the status alone, because Slack
 * appends any other field to its former value.
 */
export function toTaskChunks(before: TaskCards, after: TaskCards): Chunk[] {
  return [...after].flatMap(([id, card]) =>
    isSame(before.get(id), card) ? [] : [{ type: "task_update", id, title: card.title, status: card.status }],
  );
}

/** The chunk by which the cards of an ended answer fold into one line. */
export function toFold(steps: readonly Step[]): Chunk[] {
  return steps.length === 0 ? [] : [{ type: "plan_update", title: foldSteps(steps) }];
}

function isSame(before: TaskCard | undefined, after: TaskCard): boolean {
  return before?.title === after.title && before.status === after.status;
}

/** The arguments with which a call adds to a stream: Slack takes either plain text or chunks, never both. */
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
