import { describeError, SinkError, type SinkErrorKind } from "../port/errors.ts";
import type { CallKind, Written } from "../port/pace.ts";
import { FencedError } from "../port/right.ts";
import type { Draft, Receipt, ReplySink } from "../port/sink.ts";
import type { Source } from "../text/sources.ts";
import { type Closing, createReplyDrafts, type ReplyDrafts } from "./drafts.ts";
import { type Change, createReplyMessages, type ReplyMessagesOptions } from "./messages.ts";
import { isRefusal, toCallResult, toEditKind, toFailed } from "./platform-call.ts";
import { rendersSteps, type Steps } from "./steps.ts";

/**
 * If calls follow each other quickly, `seen` already includes the text that people will see within this time, because
 * noting the text before each call would cost more than the call. After a crash, people see no new text for about this
 * long.
 */
const SEEN_AHEAD_MS = 700;
/** The limits of the text that `seen` includes in advance, in UTF-16 units. */
const MIN_SEEN_AHEAD = 40;
const MAX_SEEN_AHEAD = 400;

export interface ReplyWriterOptions extends ReplyMessagesOptions {
  steps?: Steps;
  /** The turn id for the Stop button, if it differs from the record's id. */
  stopId?: string;
  /** See `ReplyDraftsOptions`. */
  sources?: () => readonly Source[];
  /** Returns the end of a reply whose text the platform does not accept. */
  refusal(kind: SinkErrorKind): Closing;
  /** Called with the whole text before a call shows more of it. The call waits until the promise has settled. */
  onSeen(text: string): Promise<void>;
  /**
   * Called after every call that the platform accepted or refused. `isWait` is true if the reply had neither text nor
   * an ending.
   */
  onCall(kind: Change["type"], error: SinkError | undefined, isWait: boolean): void;
  /** Called when the platform shows all of the text so far. `units` is its length in UTF-16 units. */
  onShown?(units: number): void;
  /** Called when the platform permanently refuses the text or the whole reply. */
  onRefused(kind: SinkErrorKind): void;
}

export interface ReplyWriter extends Pick<ReplyDrafts, "append" | "text" | "wait" | "end"> {
  /** Makes the most urgent call, with the newest text. Never rejects. Make only one call at a time. */
  write(): Promise<Written>;
  /** Resolves when no call is in flight. Rejects with a `FencedError` if another process took the reply over. */
  settled(): Promise<void>;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { sink, record, steps } = options;
  const drafts = createReplyDrafts({
    turnId: options.stopId ?? record.id,
    limits: sink.limits,
    // Platforms that cannot show running steps get one line with all steps at the end.
    steps: () => (rendersSteps(sink) || drafts.isOver ? steps?.all : undefined),
    sealed: record.sealed,
    ...(options.sources !== undefined && { sources: options.sources }),
  });
  const messages = createReplyMessages(options);
  /** People have read this much text of an earlier attempt. New text is held back until it is longer. */
  const heldUntil = options.isResumed ? record.seen : 0;
  let refused = false;
  let fenced: FencedError | undefined;
  let inFlight: Promise<unknown> = Promise.resolve();
  const noteSeen = createSeenNotes(options);

  async function continueAfterSealed(index: number, draft: Draft, shownLength: number | undefined): Promise<void> {
    const taken = messages.takenAt(index);
    // The refused edit would not have changed the text.
    if (JSON.stringify(taken) === JSON.stringify(draft)) return messages.markAsShown(index, draft);
    if (shownLength !== undefined && shownLength > 0) {
      record.sealed = drafts.seal(index + 1, draft, shownLength);
    } else if (taken !== undefined && shownLength === undefined) {
      record.sealed = drafts.seal(index + 1, taken, "all");
    } else {
      // An earlier attempt left a different or unknown text, so further messages show the whole text again.
      record.sealed = drafts.seal(record.posted.length, draft, "nothing");
    }
    await options.onRecord();
  }

  /** Handles a permanent refusal: continues the reply in another way, or ends it. */
  async function onRefusal(change: Change, { kind, shownLength }: SinkError): Promise<void> {
    if (kind === "sealed" && change.type === "edit")
      return continueAfterSealed(change.index, change.draft, shownLength);
    // An earlier attempt may have removed the message without noting that.
    if (kind === "gone" && change.type === "edit" && change.index > 0 && messages.isUnseen(change.index)) {
      return messages.forget(change.index);
    }
    // Bots can often write in a channel but not attach files there.
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

  async function write(): Promise<Written> {
    const { length } = drafts.text;
    const isWait = length === 0 && !drafts.isOver;
    let wanted = drafts.render();
    const isHeld = !drafts.isOver && heldUntil > 0 && length <= heldUntil;
    const change =
      refused || fenced !== undefined || isHeld ? undefined : messages.nextChange(wanted, drafts.file(), drafts.isOver);
    if (change === undefined) return { answer: { ok: true }, behind: false };
    if (needsFallback(sink, change)) {
      sink.fallback?.activate();
      return { answer: { ok: true }, behind: true, next: "post" };
    }
    const kind = toKind(change);
    const wasPosting = record.isPosting;
    let receipt: Receipt = {};
    // Notes the text before the call, because the outcome of the call is unknown if the process dies.
    const noting = noteSeen(drafts.text, drafts.isOver);
    if (noting !== undefined) await noting;
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
    write: () => (inFlight = write()),
    async settled() {
      await inFlight;
      if (fenced !== undefined) throw fenced;
    },
  };
}

/** True if the sink's fallback must be activated: a message that is posted complete does not have to grow. */
function needsFallback({ fallback }: ReplySink, change: Change): boolean {
  return fallback?.isActive === false && change.type === "post" && !change.draft.streaming;
}

/** Creates the function that notes the text before people see more of it. */
function createSeenNotes({
  record,
  onSeen,
}: ReplyWriterOptions): (text: string, isOver: boolean) => Promise<void> | undefined {
  const estimateAhead = createAheadEstimate();
  let noted = 0;
  return (text, isOver) => {
    const { length } = text;
    const ahead = estimateAhead(length);
    // Notes the text again before the final call, which shows all of it: the last note can lack text that `seen`
    // included in advance.
    if (length <= (isOver ? noted : record.seen)) return undefined;
    record.seen = Math.max(record.seen, isOver ? length : length + ahead);
    noted = length;
    return onSeen(text);
  };
}

/** Estimates from the growth since the last call how much more text the next calls will show. 0 if calls are rare. */
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

/** A call's kind for the pacing. Platforms can have a separate limit for the last edit of a message. */
function toKind(change: Change): CallKind {
  if (isPost(change)) return "post";
  return change.type === "edit" && !change.draft.streaming ? toEditKind(change.draft) : "edit";
}

function isPost({ type }: Change): boolean {
  return type === "post" || type === "upload";
}

/** Treats any other error, such as a timeout, as `unavailable`, because the outcome of the call is unknown. */
function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const quote = ` (${describeError(error)})`;
  return new SinkError("unavailable", "It is unknown whether the platform carried out the call", {
    cause: error,
    quote,
  });
}
