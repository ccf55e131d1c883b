import { describeError, SinkError, type SinkErrorKind } from "../port/errors.ts";
import type { CallKind, Written } from "../port/pace.ts";
import { FencedError } from "../port/right.ts";
import type { Draft, Receipt } from "../port/sink.ts";
import type { Source } from "../text/sources.ts";
import { type Closing, createReplyDrafts, type ReplyDrafts } from "./drafts.ts";
import { type Change, createReplyMessages, type ReplyMessagesOptions } from "./messages.ts";
import { isRefusal, toCallResult, toEditKind, toFailed } from "./platform-call.ts";
import { rendersSteps, type Steps } from "./steps.ts";

/**
 * If calls follow each other quickly, `seen` includes in advance the text of this time, because a note for each call
 * would cost more than the call. After a crash, the reply shows nothing new for about this time.
 */
const SEEN_AHEAD_MS = 700;
/** In UTF-16 units. */
const MIN_SEEN_AHEAD = 40;
const MAX_SEEN_AHEAD = 400;

export interface ReplyWriterOptions extends ReplyMessagesOptions {
  /** The reply's steps, such as tool calls. Absent if there are none. */
  steps?: Steps;
  /** The id for a growing reply's Stop button. If absent, the turn's id. */
  stopId?: string;
  /** The pages behind the text so far, see `ReplyDraftsOptions`. */
  sources?: () => readonly Source[];
  /** Ends the reply if the platform does not accept the text. */
  refusal(kind: SinkErrorKind): Closing;
  /** Called with the whole text so far before people see more of it. The call that shows the text waits for this. */
  onSeen(text: string): Promise<void>;
  /**
   * Called after every call that the platform accepted or refused. `isWait` is true if the call showed neither text nor
   * an ending.
   */
  onCall(kind: Change["type"], error: SinkError | undefined, isWait: boolean): void;
  /** Called with the length of the text that is on the platform, in UTF-16 units. */
  onShown?(units: number): void;
  /** Called once if the platform rejects every form of this reply for good. */
  onRefused(kind: SinkErrorKind): void;
}

/**
 * The writer of one reply's messages. It knows what they should show and what they do show, and makes the next call.
 */
export interface ReplyWriter extends Pick<ReplyDrafts, "append" | "text" | "wait" | "end"> {
  /** Makes the most urgent call with the newest text. Never rejects. Make only one call at a time. */
  write(): Promise<Written>;
  /** Resolves when no call is in flight. Rejects with a `FencedError` if another process took the reply over. */
  settled(): Promise<void>;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { sink, record, steps } = options;
  const drafts = createReplyDrafts({
    turnId: options.stopId ?? record.id,
    limits: sink.limits,
    // If a platform cannot show steps one by one, they are folded into one line at the end.
    steps: () => (rendersSteps(sink) || drafts.isOver ? steps?.all : undefined),
    sealed: record.sealed,
    ...(options.sources !== undefined && { sources: options.sources }),
  });
  const messages = createReplyMessages(options);
  /** After a crash, a new version of the answer does not remove text that people have read. */
  const heldUntil = options.isResumed ? record.seen : 0;
  let refused = false;
  let fenced: FencedError | undefined;
  /** The length of the text at its last note. */
  let noted = 0;
  let inFlight: Promise<unknown> = Promise.resolve();
  const estimateAhead = createAheadEstimate();

  /** Seals a message. Further messages show the rest. */
  async function continueAfterSealed(index: number, draft: Draft, shownLength: number | undefined): Promise<void> {
    const taken = messages.takenAt(index);
    // The write only repeated the text to be safe.
    if (JSON.stringify(taken) === JSON.stringify(draft)) return messages.markAsShown(index, draft);
    if (shownLength !== undefined && shownLength > 0) {
      record.sealed = drafts.seal(index + 1, draft, shownLength);
    } else if (taken !== undefined && shownLength === undefined) {
      record.sealed = drafts.seal(index + 1, taken, "all");
    } else {
      // An earlier attempt left a different or unknown text. Shows everything again, so that nothing is lost.
      record.sealed = drafts.seal(record.posted.length, draft, "nothing");
    }
    await options.onRecord();
  }

  /** Handles a permanent refusal. The reply continues in another way, or ends. */
  async function onRefusal(change: Change, { kind, shownLength }: SinkError): Promise<void> {
    if (kind === "sealed" && change.type === "edit")
      return continueAfterSealed(change.index, change.draft, shownLength);
    // An earlier attempt may have died after it removed a message and before it recorded that.
    if (kind === "gone" && change.type === "edit" && change.index > 0 && messages.isUnseen(change.index)) {
      return messages.forget(change.index);
    }
    // A bot often can write in a channel but cannot attach files there.
    if (change.type === "upload" && kind !== "gone") return drafts.rejectFile();
    const isOfText = kind === "rejected" || kind === "filtered";
    if (isOfText && change.type !== "remove" && !drafts.isRejected) {
      const index = change.type === "edit" ? change.index : record.posted.length;
      drafts.reject(index - (record.sealed?.count ?? 0), options.refusal(kind), messages.takenAt(index));
    } else {
      refused = true;
    }
    options.onRefused(kind);
  }

  /** A message that is complete from the start does not need a way of writing that lets it grow. */
  function needsFallback(change: Change): boolean {
    return sink.fallback?.isActive === false && change.type === "post" && !change.draft.streaming;
  }

  async function write(): Promise<Written> {
    const { length } = drafts.text;
    const isWait = length === 0 && !drafts.isOver;
    let wanted = drafts.render();
    const isHeld = !drafts.isOver && heldUntil > 0 && length <= heldUntil;
    const change =
      refused || fenced !== undefined || isHeld ? undefined : messages.nextChange(wanted, drafts.file(), drafts.isOver);
    if (change === undefined) return { answer: { ok: true }, behind: false };
    if (needsFallback(change)) {
      sink.fallback?.activate();
      return { answer: { ok: true }, behind: true, next: "post" };
    }
    const kind = toKind(change);
    const wasPosting = record.isPosting;
    let receipt: Receipt = {};
    // Recorded before the call, because the outcome stays unknown if the process dies during it.
    const ahead = estimateAhead(length);
    // The end shows all of the text, and the last note can lack the text that `seen` included in advance.
    if (length > (drafts.isOver ? noted : record.seen)) {
      record.seen = Math.max(record.seen, drafts.isOver ? length : length + ahead);
      noted = length;
      await options.onSeen(drafts.text);
    }
    try {
      receipt = await messages.apply(change);
      options.onCall(change.type, undefined, isWait);
      if (change.type === "upload") {
        drafts.noteFile();
        wanted = drafts.render();
      }
    } catch (cause) {
      if (cause instanceof FencedError) {
        fenced = cause;
        return { answer: { ok: true }, behind: false };
      }
      const error = toSinkError(cause);
      options.onCall(change.type, error, isWait);
      if (isPost(change) && error.kind !== "unavailable") record.isPosting = wasPosting;
      if (!isRefusal(error)) return { answer: toFailed(error), behind: true, kind };
      await onRefusal(change, error);
      if (refused) return { answer: { ok: true }, behind: false, kind };
      wanted = drafts.render();
    }
    const rest = messages.nextChange(wanted, drafts.file(), drafts.isOver);
    const next = rest === undefined ? "edit" : toKind(rest);
    if (rest === undefined && !isWait) options.onShown?.(length);
    return { answer: toCallResult(receipt), behind: rest !== undefined, kind, next };
  }

  return {
    append: drafts.append,
    get text() {
      return drafts.text;
    },
    wait: drafts.wait,
    end: drafts.end,
    write() {
      const writing = write();
      inFlight = writing;
      return writing;
    },
    async settled() {
      await inFlight;
      if (fenced !== undefined) throw fenced;
    },
  };
}

/** Estimates how much text the next calls will show, from the growth since the last call. 0 if calls are rare. */
function createAheadEstimate(): (length: number) => number {
  let before: { length: number; atMs: number } | undefined;
  return (length) => {
    const now = { length, atMs: performance.now() };
    const gapMs = Math.max(1, now.atMs - (before?.atMs ?? now.atMs));
    const coming = ((length - (before?.length ?? length)) * SEEN_AHEAD_MS) / gapMs;
    before = now;
    if (gapMs >= SEEN_AHEAD_MS) return 0;
    return Math.round(Math.min(Math.max(coming, MIN_SEEN_AHEAD), MAX_SEEN_AHEAD));
  };
}

/** Platforms can have separate limits for calls that end a message and calls that let it grow. */
function toKind(change: Change): CallKind {
  if (isPost(change)) return "post";
  return change.type === "edit" && !change.draft.streaming ? toEditKind(change.draft) : "edit";
}

function isPost({ type }: Change): boolean {
  return type === "post" || type === "upload";
}

/** After any other error from an adapter, such as a timeout, the outcome of the call is unknown. */
function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const quote = ` (${describeError(error)})`;
  return new SinkError("unavailable", "It is unknown whether the platform carried out the call", {
    cause: error,
    quote,
  });
}
