import { createHash } from "node:crypto";
import { z } from "zod";
import type { Button, Draft, OutboundFile, SinkLimits, Step } from "../port/sink.ts";
import { source } from "../port/source.ts";
import { HEAL_ROOM_UNITS, healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import { linkMarks, type Source, toSmallPrint, withoutSmallPrint } from "../text/sources.ts";
import { createSplitter, type Part } from "../text/split.ts";
import { createPlacedSteps } from "./steps.ts";

/** The end of a reply, shown under its text. */
export interface Closing {
  note: string;
  buttons: Button[];
  /** True if the text broke off. Open markup is then closed, and unfinished markup is dropped. */
  isPartial?: boolean;
  /** Small print under the note. It never needs a further message. */
  sources?: readonly Source[];
}

/** The first messages of a reply, if the platform accepts no more edits of them. Further messages show the rest. */
export type Sealed = z.infer<typeof sealed>;

export const sealed = z.object({
  count: z.number(),
  /** The length of the shown text, in UTF-16 units. */
  shown: z.number(),
  /** A hash of the shown text, because a new answer can differ. */
  mark: z.string(),
  /** The pages whose marks are links in the shown text. Other pages would change the length of the text. */
  sources: z.array(source).default([]),
});

/** Turns a growing text into drafts for the messages of one reply. */
export interface ReplyDrafts {
  append(text: string): void;
  /** As the model wrote it. */
  readonly text: string;
  /** Shown until there is text. "": nothing. */
  wait(note: string): void;
  end(closing: Closing): void;
  /**
   * The platform rejects the text from this message on. The refusal is shown under the part of the text that the
   * message already shows, or instead of the message.
   */
  reject(index: number, refusal: Closing, shown?: Draft): void;
  /** The platform rejects the file, so the answer takes as many messages as necessary. */
  rejectFile(): void;
  /** The file was posted, so the answer can mention it. */
  noteFile(): void;
  readonly isOver: boolean;
  readonly isRejected: boolean;
  /** Drafts for the messages that are not sealed. */
  render(): Draft[];
  /**
   * Seals the first `count` messages. The rest of the text starts after the shown part of this draft: a number of
   * UTF-16 units of its source, everything, or nothing.
   */
  seal(count: number, draft: Draft, shown: number | "all" | "nothing"): Sealed;
  /** The whole answer, if it has ended and needs more messages than allowed. */
  file(): OutboundFile | undefined;
}

export interface ReplyDraftsOptions {
  turnId: string;
  limits: SinkLimits;
  /** Undefined if the platform no longer shows steps. The shown steps then stay. */
  steps?: () => readonly Step[] | undefined;
  /** The pages whose citation marks become links. Absent: those of the closing. */
  sources?: () => readonly Source[];
  /** Messages of an earlier attempt. */
  sealed?: Sealed | undefined;
}

interface Rejection {
  index: number;
  refusal: Closing;
  /** The part of the text that the message shows. */
  shown: Draft | undefined;
}

const WILL_COME = "_This answer is too long for messages here. I'll attach all of it as a file._";
const HAS_COME = "_The whole answer is in the attached file._";
const WAS_ALL = "_That's the end of my answer. I can no longer edit the message above._";

export function createReplyDrafts({ turnId, limits, ...options }: ReplyDraftsOptions): ReplyDrafts {
  const { maxLength, lengthOf, keptLength, maxMessages = Infinity } = limits;
  // Closing marks need room, because a draft must never need more messages than the final text.
  const splitLimits = { maxLength: maxLength - HEAL_ROOM_UNITS, lengthOf, keptLength };
  const stop: Button = { action: "stop", turnId, label: "Stop" };
  const origins = new WeakMap<Draft, Origin>();
  let splitter = createSplitter(splitLimits);
  /** The start of the first unsealed message in the text. */
  let from = 0;
  /** Sealed messages of an earlier attempt, until the text is as long as theirs. */
  let undecided = options.sealed;
  /** Set when a part of the text is sealed. */
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

  /** Splits the text and the note into messages. If there are too many, the note of the last one mentions the file. */
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
      // A notice about a wait is no text.
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
      // The reply can remove a notice again, because it is no text.
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
        const bare = withSteps(isLast ? toLastDraft(part, ending, stop) : toFullDraft(part), placed.of(index));
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

function toFullDraft({ text: markdown }: Part): Draft {
  return { markdown, buttons: [], streaming: false };
}

function toLastDraft({ text: markdown, closingLength }: Part, ending: Closing | undefined, stop: Button): Draft {
  if (ending !== undefined) return { markdown, buttons: ending.buttons, streaming: false };
  const source = markdown.slice(0, markdown.length - closingLength);
  return { markdown: healMarkdown(markdown), source, buttons: [stop], streaming: true };
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

/** With an empty text, people need a note that the answer is over, and the buttons need a message. */
function toNote(ending: Closing | undefined, isEmpty: boolean): string {
  const note = neutralize(ending?.note ?? "");
  return note === "" && ending !== undefined && isEmpty ? WAS_ALL : note;
}

function toShownText(text: string, sources: readonly Source[], isGrowing: boolean): string {
  return linkMarks(withoutSmallPrint(neutralize(text)), sources, isGrowing).trimEnd();
}

/** Lists as many sources as fit under the message. */
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
  // A closing mark adds a line only inside a code block.
  const probe = `${body}\nx`;
  const healed = healMarkdown(probe);
  return body + (healed.startsWith(`${probe}\n`) ? healed.slice(probe.length) : "");
}

function toTextMark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** The part of the text in a draft. */
interface Origin {
  part: Part;
  whole: string;
  /** The draft without its small print. */
  bare: Draft;
  /** The pages whose marks are links in `whole`. */
  sources: readonly Source[];
}

function findPlace({ part, whole, bare }: Origin, shown: number | "all" | "nothing"): number {
  if (shown === "nothing") return part.start;
  const { markdown, source = markdown.slice(0, markdown.length - part.closingLength) } = bare;
  return shown === "all" ? findEnd(source, markdown, part, whole) : findPlaceAt(source, part, whole, shown);
}

/** How many of the last visible characters must occur in the text. */
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
