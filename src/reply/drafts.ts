import { createHash } from "node:crypto";
import { z } from "zod";
import type { Button, Draft, OutboundFile, SinkLimits, Step } from "../port/sink.ts";
import { source } from "../port/source.ts";
import { HEAL_ROOM_UNITS, healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import { linkMarks, type Source, toSmallPrint, withoutSmallPrint } from "../text/sources.ts";
import { createSplitter, type Part } from "../text/split.ts";
import { createPlacedSteps } from "./steps.ts";

/** Shown under the text when the turn has ended. */
export interface Closing {
  note: string;
  buttons: Button[];
  /** True if the text broke off. Then open markup is closed and unfinished markup is dropped. */
  isPartial?: boolean;
  /** The pages behind the answer, as small print under the note. It never needs a further message. */
  sources?: readonly Source[];
}

/**
 * The first messages of a reply, if the platform accepts no more edits of them. Further messages below them show the
 * rest.
 */
export type Sealed = z.infer<typeof sealed>;

export const sealed = z.object({
  count: z.number(),
  /** The length of the text that they show, in UTF-16 units of the visible text. */
  shown: z.number(),
  /** A hash of that text, because a new answer can have a different text. */
  mark: z.string(),
  /** The pages by which the text's citation marks became links. Later pages would change its length. */
  sources: z.array(source).default([]),
});

/** Turns a growing text into drafts for the messages of one reply. */
export interface ReplyDrafts {
  append(text: string): void;
  /** The text so far, as the model wrote it. */
  readonly text: string;
  /** Shown until there is text. "" shows nothing. */
  wait(note: string): void;
  /** Call this when no more text follows. */
  end(closing: Closing): void;
  /**
   * The platform rejects the text from this message on, so the refusal ends the reply. If the message shows a part of
   * the text, the refusal is under that part. Otherwise the refusal replaces the message.
   */
  reject(index: number, refusal: Closing, shown?: Draft): void;
  /** The platform rejects the file, so the answer uses as many messages as it needs. */
  rejectFile(): void;
  /** The file was posted. The answer mentions the file only after this. */
  noteFile(): void;
  readonly isOver: boolean;
  readonly isRejected: boolean;
  /** The drafts for all messages that are not sealed. */
  render(): Draft[];
  /**
   * Seals the first `count` messages. The rest starts after the part of this draft that `shown` describes: a number of
   * UTF-16 units of its source, all that it shows, or nothing.
   */
  seal(count: number, draft: Draft, shown: number | "all" | "nothing"): Sealed;
  /** The whole answer, if it has ended and did not fit into its messages. */
  file(): OutboundFile | undefined;
}

export interface ReplyDraftsOptions {
  turnId: string;
  limits: SinkLimits;
  /** Undefined if the platform no longer shows steps. The visible steps then do not change. */
  steps?: () => readonly Step[] | undefined;
  /** The pages behind the text so far, by which its citation marks become links; absent: the closing's. */
  sources?: () => readonly Source[];
  /** Messages of an earlier attempt, which stay as they are. */
  sealed?: Sealed | undefined;
}

interface Rejection {
  /** The index of the rejected message. */
  index: number;
  refusal: Closing;
  /** The part of the text that this message shows. */
  shown: Draft | undefined;
}

const WILL_COME = "_This answer is too long for messages here. I'll attach all of it as a file._";
const HAS_COME = "_The whole answer is in the attached file._";
const WAS_ALL = "_That was the whole answer. I can't change its last message any more._";

export function createReplyDrafts({ turnId, limits, ...options }: ReplyDraftsOptions): ReplyDrafts {
  const { maxLength, lengthOf, keptLength, maxMessages = Infinity } = limits;
  // Always leaves room for closing marks, because a draft must never need more messages than the final text.
  const splitLimits = { maxLength: maxLength - HEAL_ROOM_UNITS, lengthOf, keptLength };
  const stop: Button = { action: "stop", turnId, label: "Stop" };
  /** The part of the text that each draft was made from. */
  const origins = new WeakMap<Draft, Origin>();
  let splitter = createSplitter(splitLimits);
  /** Where the first unsealed message starts in the text. */
  let from = 0;
  /** An earlier attempt's sealed messages, until the text is as long as theirs. */
  let undecided = options.sealed;
  /** Set while a part of the text is sealed. */
  let sealedSources = options.sealed?.sources;
  let placed = createPlacedSteps();
  let text = "";
  let ending: Closing | undefined;
  let waiting = "";
  let rejected: Rejection | undefined;
  let isTooLong = false;
  let file: "due" | "there" | "refused" = "due";

  const readSources = () => sealedSources ?? ending?.sources ?? options.sources?.() ?? [];
  const toBody = () => toShownText(text, readSources(), (ending ?? rejected) === undefined);

  function restartSplitterAt(place: number): void {
    undecided = undefined;
    from = place;
    splitter = createSplitter(splitLimits, from);
  }

  /** False until it is known where the text continues. */
  function decide(): boolean {
    if (undecided === undefined) return true;
    const { shown, mark } = undecided;
    const body = toBody();
    if (body.length < shown && ending === undefined) return false;
    const isSameText = shown <= body.length && toTextMark(body.slice(0, shown)) === mark;
    if (!isSameText) sealedSources = undefined;
    restartSplitterAt(isSameText ? shown : 0);
    return true;
  }

  function toDraft({ text: markdown, closingLength }: Part, isLast: boolean): Draft {
    if (!isLast) return { markdown, buttons: [], streaming: false };
    if (ending !== undefined) return { markdown, buttons: ending.buttons, streaming: false };
    const source = markdown.slice(0, markdown.length - closingLength);
    return { markdown: healMarkdown(markdown), source, buttons: [stop], streaming: true };
  }

  /**
   * Splits a text and its note into messages. If there are too many, keeps the first ones and mentions the file that
   * contains the whole answer.
   */
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
      // A notice about a wait is not part of the text.
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
      const sources = [...(sealedSources ?? origin?.sources ?? readSources())];
      sealedSources = sources;
      const place = origin === undefined ? from : findPlace(origin, shown);
      placed = createPlacedSteps();
      if (rejected !== undefined) rejected = { ...rejected, index: 0, shown: undefined };
      restartSplitterAt(place);
      return { count, shown: place, mark: toTextMark(toBody().slice(0, place)), sources };
    },
    render() {
      // The notice is not part of the text, so the reply can remove it again.
      if (waiting !== "" && ending === undefined && toBody() === "") {
        return [{ markdown: waiting, buttons: [stop], streaming: false }];
      }
      if (!decide()) return [];
      const body = toBody();
      const sources = readSources();
      const note = toNote(ending, from > 0 && body.slice(from).trim() === "");
      const shown = ending?.isPartial === true ? healMarkdown(body) : body;
      const whole = note === "" ? shown : [closeFence(shown), note].filter(Boolean).join("\n\n");
      const parts = toParts(whole, note);
      if (parts.length > 0) placed.place(options.steps?.() ?? [], parts.length - 1);
      const drafts = parts.map((part, index) => {
        const isLast = index === parts.length - 1;
        const bare = withSteps(toDraft(part, isLast), placed.of(index));
        const draft = withSources(bare, isLast ? ending?.sources : [], limits);
        origins.set(draft, { part, whole, bare, sources });
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

/** `isEmpty`: otherwise nothing shows that the answer is over, and its buttons have no message. */
function toNote(ending: Closing | undefined, isEmpty: boolean): string {
  const note = neutralize(ending?.note ?? "");
  return note === "" && ending !== undefined && isEmpty ? WAS_ALL : note;
}

function toShownText(text: string, sources: readonly Source[], isGrowing: boolean): string {
  return linkMarks(withoutSmallPrint(neutralize(text)), sources, isGrowing).trimEnd();
}

/** Puts as many of the sources under a message as fit. */
function withSources(draft: Draft, sources: readonly Source[] = [], { maxLength, lengthOf }: SinkLimits): Draft {
  const lines = toSmallPrint(sources);
  if (lines.length === 0) return draft;
  const text = closeFence(draft.markdown);
  for (let count = lines.length; count > 1; count--) {
    const markdown = [text, lines.slice(0, count).join("\n")].filter(Boolean).join("\n\n");
    if (lengthOf(markdown) <= maxLength) return { ...draft, markdown };
  }
  return draft;
}

function withSteps(draft: Draft, steps: readonly Step[]): Draft {
  return steps.length === 0 ? draft : { ...draft, steps };
}

/** Closes an open code block, so that the text below is not part of it. */
function closeFence(body: string): string {
  // Closing marks add a line only inside a fence, and never change the existing text.
  const probe = `${body}\nx`;
  const healed = healMarkdown(probe);
  return body + (healed.startsWith(`${probe}\n`) ? healed.slice(probe.length) : "");
}

/** Identifies a text without storing it. */
function toTextMark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** The part that a draft was made from, and the text that contains this part. */
interface Origin {
  part: Part;
  whole: string;
  /** The draft without its small print. */
  bare: Draft;
  /** The pages by which the marks in `whole` became links. */
  sources: readonly Source[];
}

function findPlace({ part, whole, bare }: Origin, shown: number | "all" | "nothing"): number {
  if (shown === "nothing") return part.start;
  const { markdown, source = markdown.slice(0, markdown.length - part.closingLength) } = bare;
  return shown === "all" ? findEnd(source, markdown, part, whole) : findPlaceAt(source, part, whole, shown);
}

/** The last visible characters. They must occur in the text. */
const COMPARED_CHARS = 48;

/** The position in `text` after the end of a part's visible text. */
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

/** The position in `text` after the first `length` units of a part's source. */
function findPlaceAt(source: string, part: Part, text: string, length: number): number {
  const content = text.slice(part.start, part.end);
  const lead = content.length - content.trimStart().length;
  const repeated = Math.max(0, source.length - content.trim().length);
  // Unfinished markup was not shown.
  const written = source.slice(0, length);
  const shown = countCommon(written, healMarkdown(written));
  return part.start + lead + Math.max(0, shown - repeated);
}

function countCommon(one: string, other: string): number {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count += 1;
  return count;
}
