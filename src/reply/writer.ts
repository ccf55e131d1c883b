import { mayBeTakenOver } from "../concurrency/fence.ts";
import { describeError, SinkError, type SinkErrorKind } from "../port/errors.ts";
import type { CallKind, Written } from "../port/pace.ts";
import type { Draft, Receipt } from "../port/sink.ts";
import { type Closing, createReplyDrafts, type ReplyDrafts } from "./drafts.ts";
import { type Change, createReplyMessages, type ReplyMessagesOptions } from "./messages.ts";
import { isRefusal, toCallResult, toFailed } from "./platform-call.ts";
import { rendersSteps, type Steps } from "./steps.ts";

/**
 * UTF-16 units noted as seen ahead of what is shown, if no other process could take over: each note is a flush to disk,
 * and one per call would cost more than the call.
 */
const SEEN_AHEAD_UNITS = 400;

export interface ReplyWriterOptions extends ReplyMessagesOptions {
  /** The calls of tools and the like; absent where there are none. */
  steps?: Steps;
  /** Ends the reply where the platform does not take the text. */
  refusal(kind: SinkErrorKind): Closing;
  /** Called when people are about to see more of the text, which is all of it; the call that shows it waits for this. */
  onSeen(text: string): Promise<void>;
  /** Told of every call the platform answered, refused or not; `isWait`: it showed nothing of the text, nor its end. */
  onCall(kind: Change["type"], error: SinkError | undefined, isWait: boolean): void;
  /** Told how much of the text stands on the platform, in UTF-16 units; absent: nobody asks. */
  onShown?(units: number): void;
  /** Told once when the platform will not take this reply any more, whatever is tried. */
  onRefused(kind: SinkErrorKind): void;
}

/** The writer of one reply's messages: knows what they should show and what they show, and makes the next call. */
export interface ReplyWriter extends Pick<ReplyDrafts, "append" | "text" | "wait" | "end"> {
  /** Makes the one most urgent call with the newest text. Never rejects; one at a time. */
  write(): Promise<Written>;
  settled(): Promise<void>;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { sink, record, steps } = options;
  const drafts = createReplyDrafts({
    turnId: record.id,
    limits: sink.limits,
    // Folded into one line at the end, they stand where they could not be shown one by one.
    steps: () => (rendersSteps(sink) || drafts.isOver ? steps?.all : undefined),
    sealed: record.sealed,
  });
  const messages = createReplyMessages(options);
  /** An answer that is written again after a crash does not take back what people have read. */
  const heldUntil = options.isResumed ? record.seen : 0;
  const seenAhead = mayBeTakenOver() ? 0 : SEEN_AHEAD_UNITS;
  let refused = false;
  let inFlight: Promise<unknown> = Promise.resolve();

  /** A message stays as it is: what it does not show comes in further ones. */
  async function continueAfterSealed(index: number, draft: Draft, shownLength: number | undefined): Promise<void> {
    const taken = messages.takenAt(index);
    // It was to be written once more for safety's sake.
    if (JSON.stringify(taken) === JSON.stringify(draft)) return messages.markAsShown(index, draft);
    if (shownLength !== undefined && shownLength > 0) {
      record.sealed = drafts.seal(index + 1, draft, shownLength);
    } else if (taken !== undefined && shownLength === undefined) {
      record.sealed = drafts.seal(index + 1, taken, "all");
    } else {
      // An earlier attempt left another text, or an unknown one: all of it is shown again, so that nothing is lost.
      record.sealed = drafts.seal(record.posted.length, draft, "nothing");
    }
    await options.onRecord();
  }

  /** Acts on a refusal for good: the reply goes on another way, or ends. */
  async function onRefusal(change: Change, { kind, shownLength }: SinkError): Promise<void> {
    if (kind === "sealed" && change.type === "edit")
      return continueAfterSealed(change.index, change.draft, shownLength);
    // An earlier attempt may have taken a message back and died before it said so.
    if (kind === "gone" && change.type === "edit" && change.index > 0 && messages.isUnseen(change.index)) {
      return messages.forget(change.index);
    }
    // Bots may often write where they may not attach anything.
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

  /** A message that is whole from the beginning has nothing to gain from the way that lets it grow. */
  function needsFallback(change: Change): boolean {
    return sink.fallback?.isActive === false && change.type === "post" && !change.draft.streaming;
  }

  async function write(): Promise<Written> {
    const { length } = drafts.text;
    const isWait = length === 0 && !drafts.isOver;
    let wanted = drafts.render();
    const isHeld = !drafts.isOver && heldUntil > 0 && length <= heldUntil;
    const change = refused || isHeld ? undefined : messages.nextChange(wanted, drafts.file(), drafts.isOver);
    if (change === undefined) return { answer: { ok: true }, behind: false };
    if (needsFallback(change)) {
      sink.fallback?.activate();
      return { answer: { ok: true }, behind: true, next: "post" };
    }
    const kind = toKind(change);
    const wasPosting = record.isPosting;
    let receipt: Receipt = {};
    // Before the call: whether it was carried out may not be known any more when the process dies in it.
    if (length > record.seen) {
      record.seen = length + seenAhead;
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
    settled: async () => void (await inFlight),
  };
}

/** Platforms may count the call that ends a message apart from those that let it grow. */
function toKind(change: Change): CallKind {
  if (isPost(change)) return "post";
  return change.type === "edit" && !change.draft.streaming ? "final" : "edit";
}

function isPost({ type }: Change): boolean {
  return type === "post" || type === "upload";
}

/** Any other error of an adapter, a timeout among them, leaves open whether the call was carried out. */
function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const quote = ` (${describeError(error)})`;
  return new SinkError("unavailable", "It is not known whether the call was carried out", { cause: error, quote });
}
