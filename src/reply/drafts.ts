import { createHash } from "node:crypto";
import { z } from "zod";
import type { Button, Draft, OutboundFile, SinkLimits, Step } from "../port/sink.ts";
import { HEAL_ROOM_UNITS, healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import { createSplitter, type Part } from "../text/split.ts";
import { createPlacedSteps } from "./steps.ts";

/** Stands under the text when the turn is over. */
export interface Closing {
  note: string;
  buttons: Button[];
  /** The text broke off: marks that it left open are closed, and what had only begun is left out. */
  isPartial?: boolean;
}

/** The first messages of a reply, where the platform takes no change of them any more: the rest stands behind them. */
export type Sealed = z.infer<typeof sealed>;

export const sealed = z.object({
  count: z.number(),
  /** The length of the text that they show, in UTF-16 units of the text as it is shown. */
  shown: z.number(),
  /** A hash of that text: an answer that is made again may be another one. */
  mark: z.string(),
});

/** Makes of a growing text the drafts that the messages of one reply should show. */
export interface ReplyDrafts {
  append(text: string): void;
  /** Text so far, as the model wrote it. */
  readonly text: string;
  /** Stands there until there is text; "" for nothing. */
  wait(note: string): void;
  /** No more text comes. */
  end(closing: Closing): void;
  /**
   * From this message on the platform does not take the text: the refusal ends the reply. It stands under the draft that
   * the message shows, where that has some of the text, and in the place of anything else.
   */
  reject(index: number, refusal: Closing, shown?: Draft): void;
  /** The platform does not take the file: the answer comes in as many messages as it needs. */
  rejectFile(): void;
  /** The file is there: only now is that said. */
  noteFile(): void;
  readonly isOver: boolean;
  readonly isRejected: boolean;
  /** The drafts of all messages that are not sealed. */
  render(): Draft[];
  /**
   * Leaves the first `count` messages as they are. What follows begins behind the part of this draft that `shown`
   * names: a number of UTF-16 units of its source, all that it shows, or nothing of it.
   */
  seal(count: number, draft: Draft, shown: number | "all" | "nothing"): Sealed;
  /** The whole answer, once it is over and its messages could not hold it. */
  file(): OutboundFile | undefined;
}

export interface ReplyDraftsOptions {
  turnId: string;
  limits: SinkLimits;
  /** Undefined where the platform shows none any more: what it has shown then stays as it was. */
  steps?: () => readonly Step[] | undefined;
  /** Messages of an earlier attempt that stay as they are. */
  sealed?: Sealed | undefined;
}

interface Rejection {
  /** Of the message that is not taken. */
  index: number;
  refusal: Closing;
  /** What that message shows of the text. */
  shown: Draft | undefined;
}

const WILL_COME = "_This is longer than fits here; the whole answer will come as a file._";
const HAS_COME = "_The whole answer is in the attached file._";
const WAS_ALL = "_That was the whole answer: the message with the end of it cannot be changed any more._";

export function createReplyDrafts({ turnId, limits, ...options }: ReplyDraftsOptions): ReplyDrafts {
  const { maxLength, lengthOf, keptLength, maxMessages = Infinity } = limits;
  // Room for healing is kept also when nothing is to heal: a draft must never need more messages than the final text.
  const splitLimits = { maxLength: maxLength - HEAL_ROOM_UNITS, lengthOf, keptLength };
  const stop: Button = { action: "stop", turnId, label: "Stop" };
  /** The part of the text that each draft was made of. */
  const origins = new WeakMap<Draft, Origin>();
  let splitter = createSplitter(splitLimits);
  /** The place in the text where the first message begins that is not sealed. */
  let from = 0;
  /** Messages of an earlier attempt, until there is as much text as they show. */
  let undecided = options.sealed;
  let placed = createPlacedSteps();
  let text = "";
  let ending: Closing | undefined;
  let waiting = "";
  let rejected: Rejection | undefined;
  let isTooLong = false;
  let file: "due" | "there" | "refused" = "due";

  const toBody = () => neutralize(text).trimEnd();

  function restartSplitterAt(place: number): void {
    undecided = undefined;
    from = place;
    splitter = createSplitter(splitLimits, from);
  }

  /** False while it is not known where the text goes on. */
  function decide(body: string): boolean {
    if (undecided === undefined) return true;
    const { shown, mark } = undecided;
    if (body.length < shown && ending === undefined) return false;
    const isSameText = shown <= body.length && toTextMark(body.slice(0, shown)) === mark;
    restartSplitterAt(isSameText ? shown : 0);
    return true;
  }

  function toDraft({ text: markdown, closingLength }: Part, isLast: boolean): Draft {
    if (!isLast) return { markdown, buttons: [], streaming: false };
    if (ending !== undefined) return { markdown, buttons: ending.buttons, streaming: false };
    const source = markdown.slice(0, markdown.length - closingLength);
    return { markdown: healMarkdown(markdown), source, buttons: [stop], streaming: true };
  }

  function toNote(body: string): string {
    const note = neutralize(ending?.note ?? "");
    // Otherwise nothing would tell that no more comes, and the buttons of the end would have no message.
    const isEmpty = from > 0 && body.slice(from).trim() === "";
    return note === "" && ending !== undefined && isEmpty ? WAS_ALL : note;
  }

  /** Splits a text with its note into messages; of too many, the first and a word about the file that has it all. */
  function toParts(whole: string, note: string): Part[] {
    const parts = splitter.update(whole, ending !== undefined).filter((part) => part.text.trim() !== "");
    isTooLong = file !== "refused" && parts.length > maxMessages;
    if (!isTooLong) return parts;
    const shown = parts.slice(0, maxMessages);
    const promise = [file === "there" ? HAS_COME : WILL_COME, note].filter(Boolean).join("\n\n");
    const end = parts[shown.length]?.start ?? whole.length;
    return [...shown, { text: promise, start: end, end, closingLength: 0 }];
  }

  return {
    append: (more) => void (text += more),
    get text() {
      return text;
    },
    wait: (note) => void (waiting = note),
    end: (closing) => void (ending = closing),
    reject(index, refusal, shown) {
      // A wait is no part of the text.
      rejected = { index, refusal, shown: shown !== undefined && origins.has(shown) ? shown : undefined };
    },
    rejectFile: () => void (file = "refused"),
    noteFile: () => void (file = "there"),
    get isOver() {
      return ending !== undefined || rejected !== undefined;
    },
    get isRejected() {
      return rejected !== undefined;
    },
    seal(count, draft, shown) {
      const origin = origins.get(draft);
      const place = origin === undefined ? from : findPlace(draft, origin, shown);
      placed = createPlacedSteps();
      if (rejected !== undefined) rejected = { ...rejected, index: 0, shown: undefined };
      restartSplitterAt(place);
      return { count, shown: place, mark: toTextMark(toBody().slice(0, place)) };
    },
    render() {
      const body = toBody();
      // No part of the text, so that it is written in a way that takes it back.
      if (waiting !== "" && body === "" && ending === undefined) {
        return [{ markdown: waiting, buttons: [stop], streaming: false }];
      }
      if (!decide(body)) return [];
      const note = toNote(body);
      const shown = ending?.isPartial === true ? healMarkdown(body) : body;
      const whole = note === "" ? shown : [closeFence(shown), note].filter(Boolean).join("\n\n");
      const parts = toParts(whole, note);
      if (parts.length > 0) placed.place(options.steps?.() ?? [], parts.length - 1);
      const drafts = parts.map((part, index) => {
        const draft = withSteps(toDraft(part, index === parts.length - 1), placed.of(index));
        origins.set(draft, { part, whole });
        return draft;
      });
      return rejected === undefined ? drafts : toRejected(drafts, rejected, limits);
    },
    file() {
      if (!isTooLong || ending === undefined || rejected !== undefined) return undefined;
      const bytes = new TextEncoder().encode(`${toBody()}\n`);
      return { name: "answer.md", contentType: "text/markdown", bytes };
    },
  };
}

function toRejected(
  drafts: Draft[],
  { index, refusal, shown }: Rejection,
  { maxLength, lengthOf }: SinkLimits,
): Draft[] {
  const { note, buttons } = refusal;
  const alone = { markdown: note, buttons, streaming: false };
  const before = drafts.slice(0, index);
  if (shown === undefined) return [...before, alone];
  const { source: _, ...kept } = shown;
  const markdown = `${shown.markdown}\n\n${note}`;
  if (lengthOf(markdown) > maxLength) return [...before, { ...kept, buttons: [], streaming: false }, alone];
  return [...before, { ...kept, markdown, buttons, streaming: false }];
}

function withSteps(draft: Draft, steps: readonly Step[]): Draft {
  return steps.length === 0 ? draft : { ...draft, steps };
}

/** Ends code that was left open, so that what stands under it is no part of it. */
function closeFence(body: string): string {
  // Only inside a fence does healing add a line after a further one, and nothing of what is there is touched.
  const probe = `${body}\nx`;
  const healed = healMarkdown(probe);
  return body + (healed.startsWith(`${probe}\n`) ? healed.slice(probe.length) : "");
}

/** Tells texts apart without keeping them. */
function toTextMark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** The part that a draft was made of, and the text which that is a part of. */
interface Origin {
  part: Part;
  whole: string;
}

function findPlace(draft: Draft, { part, whole }: Origin, shown: number | "all" | "nothing"): number {
  if (shown === "nothing") return part.start;
  const { markdown, source = markdown.slice(0, markdown.length - part.closingLength) } = draft;
  return shown === "all" ? findEnd(source, markdown, part, whole) : findPlaceAt(source, part, whole, shown);
}

/** Length of the end of what is shown that must be found in the text. */
const COMPARED_CHARS = 48;

/** The place in `text` behind what is shown of a part of it. */
function findEnd(source: string, markdown: string, part: Part, text: string): number {
  const shown = source.slice(0, countCommon(source, markdown)).trimEnd();
  for (let end = part.end; end > part.start; end -= 1) {
    if (shown.endsWith(text.slice(Math.max(part.start, end - COMPARED_CHARS), end).trimStart())) {
      if (text.slice(part.start, end).trim() === "") break;
      return end;
    }
  }
  return part.start;
}

/** The place in `text` behind the first `length` units of the source of a part of it. */
function findPlaceAt(source: string, part: Part, text: string, length: number): number {
  const content = text.slice(part.start, part.end);
  const lead = content.length - content.trimStart().length;
  const repeated = Math.max(0, source.length - content.trim().length);
  // Marks that have only begun were not shown.
  const written = source.slice(0, length);
  const shown = countCommon(written, healMarkdown(written));
  return part.start + lead + Math.max(0, shown - repeated);
}

function countCommon(one: string, other: string): number {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count += 1;
  return count;
}
