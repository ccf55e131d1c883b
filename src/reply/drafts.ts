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
  /** True if the text broke off, so open markup is closed and unfinished markup is dropped. */
  isPartial?: boolean;
  /** Listed as small print under the note. Sources that do not fit into the last message are left out. */
  sources?: readonly Source[];
}

/** The first messages of a reply, if the platform accepts no more edits of them. Further messages show the rest. */
export type Sealed = z.infer<typeof sealed>;

export const sealed = z.object({
  count: z.number(),
  /** The length of the text that these messages show, in UTF-16 units. */
  shown: z.number(),
  /** A hash of the text that these messages show, to recognize a new answer with a different text. */
  mark: z.string(),
  /**
   * The pages that the citation marks in this text link to. Links to other pages would change the length of the text.
   */
  sources: z.array(source).default([]),
});

/** Turns a growing text into drafts for the messages of one reply. */
export interface ReplyDrafts {
  append(text: string): void;
  /** The text so far, as the model wrote it. */
  readonly text: string;
  /** Sets a note that the reply shows until there is text. "" shows nothing. */
  wait(note: string): void;
  end(closing: Closing): void;
  /**
   * The platform rejects the text from the message at `index` on. The refusal goes under the text that this message
   * already shows (`shown`), or replaces the message.
   */
  reject(index: number, refusal: Closing, shown?: Draft): void;
  /** The platform rejects the file, so the answer takes as many messages as it needs. */
  rejectFile(): void;
  /** The file was posted, so the answer can mention it from now on. */
  noteFile(): void;
  readonly isOver: boolean;
  readonly isRejected: boolean;
  /** Drafts for the messages that are not sealed. */
  render(): Draft[];
  /**
   * Seals the first `count` messages. The rest of the text starts after the part of `draft` that the platform shows.
   * `shown` says which part that is: a number of UTF-16 units of the draft's source, everything, or nothing.
   */
  seal(count: number, draft: Draft, shown: number | "all" | "nothing"): Sealed;
  /** A file with the whole answer. Undefined unless the answer has ended and needs more messages than allowed. */
  file(): OutboundFile | undefined;
}

export interface ReplyDraftsOptions {
  turnId: string;
  limits: SinkLimits;
  /** Returns undefined if the platform no longer shows steps. Steps that are already visible then do not change. */
  steps?: () => readonly Step[] | undefined;
  /** The pages whose citation marks become links. If absent, the pages of the closing are used. */
  sources?: () => readonly Source[];
  /** The sealed messages of an earlier attempt. */
  sealed?: Sealed | undefined;
}

interface Rejection {
  index: number;
  refusal: Closing;
  /** The part of the text that the rejected message shows. */
  shown: Draft | undefined;
}

const WILL_COME = "_This answer is too long for messages here. I'll attach all of it as a file._";
const HAS_COME = "_The whole answer is in the attached file._";
const WAS_ALL = "_That's the end of my answer. I can no longer edit the message above._";

export function createReplyDrafts({ turnId, limits, ...options }: ReplyDraftsOptions): ReplyDrafts {
  const { maxLength, lengthOf, keptLength, maxMessages = Infinity } = limits;
  // Leaves space for closing marks, because a draft must never need more messages than the final text.
  const splitLimits = { maxLength: maxLength - HEAL_ROOM_UNITS, lengthOf, keptLength };
  const stop: Button = { action: "stop", turnId, label: "Stop" };
  const origins = new WeakMap<Draft, Origin>();
  let splitter = createSplitter(splitLimits);
  /** The position in the text at which the first unsealed message starts. */
  let from = 0;
  /** The sealed messages of an earlier attempt. Set until the new text is as long as the text that they show. */
  let undecided = options.sealed;
  /** The pages that the sealed text links to. Undefined until a part of the text is sealed. */
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

  /**
   * Finds where the text continues after the sealed messages. Returns false until the text is long enough to decide.
   */
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

  /** Splits the text and the note into messages. If there are too many, replaces the rest with one about the file. */
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
      // A draft without an origin shows only a notice about a wait, which is not part of the text.
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
      // Shows only the notice until there is text. The notice is no part of the text, so the reply can remove it again.
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

/**
 * Returns the note under the text. If the last message would be empty, the note says that the answer is over, because
 * the buttons need a message.
 */
function toNote(ending: Closing | undefined, isEmpty: boolean): string {
  const note = neutralize(ending?.note ?? "");
  return note === "" && ending !== undefined && isEmpty ? WAS_ALL : note;
}

function toShownText(text: string, sources: readonly Source[], isGrowing: boolean): string {
  return linkMarks(withoutSmallPrint(neutralize(text)), sources, isGrowing).trimEnd();
}

/** Lists as many sources under the message as fit. */
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

/** Closes an open code block, so that text below the block is not part of it. */
function closeFence(body: string): string {
  // Healing adds a new line only to close a code block. Other closing marks stay on the same line.
  const probe = `${body}\nx`;
  const healed = healMarkdown(probe);
  return body + (healed.startsWith(`${probe}\n`) ? healed.slice(probe.length) : "");
}

function toTextMark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** Says which part of the text a draft shows. */
interface Origin {
  part: Part;
  whole: string;
  /** The draft without its list of sources. */
  bare: Draft;
  /** The pages that the citation marks in `whole` link to. */
  sources: readonly Source[];
}

function findPlace({ part, whole, bare }: Origin, shown: number | "all" | "nothing"): number {
  if (shown === "nothing") return part.start;
  const { markdown, source = markdown.slice(0, markdown.length - part.closingLength) } = bare;
  return shown === "all" ? findEnd(source, markdown, part, whole) : findPlaceAt(source, part, whole, shown);
}

/** To find the end of the visible text, `findEnd` compares this many characters. */
const COMPARED_CHARS = 48;

/** Returns the position in `text` right after the visible text of a part. */
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

/** Returns the position in `text` right after the first `length` units of a part's source. */
function findPlaceAt(source: string, part: Part, text: string, length: number): number {
  const content = text.slice(part.start, part.end);
  const lead = content.length - content.trimStart().length;
  const repeated = Math.max(0, source.length - content.trim().length);
  // Does not count unfinished markup, because the message does not show it.
  const written = source.slice(0, length);
  const shown = countCommon(written, healMarkdown(written));
  return part.start + lead + Math.max(0, shown - repeated);
}

function countCommon(one: string, other: string): number {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count += 1;
  return count;
}
