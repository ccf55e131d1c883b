import { z } from "zod";
import { SinkError } from "../port/errors.ts";
import { toNonce } from "../port/ids.ts";
import type { Right } from "../port/right.ts";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../port/sink.ts";
import { source } from "../port/source.ts";
import { sealed } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";

/** Lets a reply resume after a crash. Contains text only until the reply has ended. */
export type ReplyRecord = z.infer<typeof replyRecord>;

export const replyRecord = z.object({
  id: z.string(),
  posted: z.array(z.string()),
  /** The number of messages that were posted and removed again. Their nonces are used up. */
  removed: z.number(),
  /** True if a further message may have been posted. Posting again with the same nonce finds it. */
  isPosting: z.boolean(),
  /** The largest part of the model's text that people can have seen, in UTF-16 units. A resumed reply shows no less. */
  seen: z.number(),
  /** The model's text when `seen` was last noted. Absent if no process can continue it. */
  shownText: z.string().exactOptional(),
  /** True if `shownText` is the model's whole answer, so the reply only has to show it. */
  isShownWhole: z.boolean().exactOptional(),
  /** The pages that the gateway cited for `shownText`; absent: none. */
  cited: z.array(source).exactOptional(),
  /** Messages of the reply that accept no more edits; absent: none. */
  sealed: sealed.exactOptional(),
});

export interface ReplyMessagesOptions {
  /** The sink, created with `right`. */
  sink: ReplySink;
  right: Right;
  /** Kept up to date with the platform. */
  record: ReplyRecord;
  /** True if an earlier attempt may have posted more than the record says. */
  isResumed: boolean;
  /** Called when the record has changed, before the next write. */
  onRecord(): Promise<void>;
}

/**
 * If the outcome of a post is uncertain, this text is posted with the same nonce, only to find the message and remove
 * it.
 */
export const PROBE: Draft = { markdown: "…", buttons: [], streaming: false };
/** The state of a message with a file. No draft equals it. */
const FILE = "file";

/** One call that brings the platform closer to the desired state. */
export type Change =
  | { type: "post"; draft: Draft }
  | { type: "edit"; index: number; draft: Draft }
  | { type: "upload"; file: OutboundFile }
  | { type: "remove" };

/** The messages of one reply as the platform shows them. */
export interface ReplyMessages {
  /**
   * The most urgent difference from the drafts and the file after them. `isOver` is true if no further drafts follow.
   */
  nextChange(drafts: readonly Draft[], file: OutboundFile | undefined, isOver: boolean): Change | undefined;
  /** Makes the call. Rejects with the platform's refusal. */
  apply(change: Change): Promise<Receipt>;
  /** True if an earlier attempt left a message here and this attempt has not written to it. */
  isUnseen(index: number): boolean;
  /** The last draft that a message certainly shows. Undefined for a message from an earlier attempt. */
  takenAt(index: number): Draft | undefined;
  /** Assumes that a message shows this draft, although the platform has not confirmed it. */
  markAsShown(index: number, draft: Draft): void;
  /** Removes a message from the record because it is no longer on the platform. */
  forget(index: number): Promise<void>;
}

export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { sink, right, record, isResumed, onRecord } = options;
  const { posted } = record;
  /** The state of each posted message. For messages from earlier attempts, it is unknown. */
  const shown: Array<string | undefined> = posted.map(() => undefined);
  /** The last draft that each message certainly shows in full. */
  const taken: Array<Draft | undefined> = posted.map(() => undefined);
  /** The draft in a post by this attempt whose outcome is unknown. */
  let doubtful: Draft | undefined;
  let isUploaded = false;

  const countSealed = () => record.sealed?.count ?? 0;

  async function post(draft: Draft): Promise<Receipt> {
    try {
      const receipt = await add(JSON.stringify(draft), (nonce, signal, mayExist) =>
        sink.post(draft, nonce, signal, !mayExist),
      );
      taken[posted.length - 1] = receipt.isPartial === true ? doubtful : draft;
      doubtful = undefined;
      return receipt;
    } catch (error) {
      if (isUncertain(error)) doubtful ??= draft;
      throw error;
    }
  }

  async function upload(file: OutboundFile): Promise<Receipt> {
    const receipt = await add(FILE, (nonce, signal) => sink.upload([file], undefined, nonce, signal));
    isUploaded = true;
    return receipt;
  }

  /** Posts a further message with the state `look`. */
  async function add(
    look: string,
    make: (nonce: string, signal: AbortSignal, mayExist: boolean) => Promise<Posted>,
  ): Promise<Receipt> {
    // Repeating an earlier attempt's post returns that attempt's message with its old text. The record may not contain
    // it if the store was unavailable.
    const mayExist = isResumed || record.isPosting || right.isResumed;
    record.isPosting = true;
    // The record already says that the first post may be in flight.
    if (posted.length > 0) await onRecord();
    const { id, ...receipt } = await callPlatform(right, (signal) => make(toNonce(record), signal, mayExist));
    posted.push(id);
    shown.push(mayExist || receipt.isPartial === true ? undefined : look);
    record.isPosting = false;
    await onRecord();
    return receipt;
  }

  async function edit(index: number, draft: Draft): Promise<Receipt> {
    const id = posted[index];
    if (id === undefined) return {};
    const receipt = await callPlatform(right, (signal) => sink.edit(id, draft, signal));
    shown[index] = receipt.isPartial === true ? undefined : JSON.stringify(draft);
    if (receipt.isPartial !== true) taken[index] = draft;
    return receipt;
  }

  async function removeLast(): Promise<Receipt> {
    const id = posted.at(-1);
    if (id !== undefined) await callPlatform(right, (signal) => sink.remove(id, signal));
    await forget(posted.length - 1);
    return {};
  }

  async function forget(index: number): Promise<void> {
    posted.splice(index, 1);
    shown.splice(index, 1);
    taken.splice(index, 1);
    record.removed += 1;
    await onRecord();
  }

  return {
    nextChange(drafts, file, isOver) {
      for (const [at, draft] of drafts.entries()) {
        const index = countSealed() + at;
        // The next message may not accept edits either, so it is posted only when it is complete.
        if (index >= posted.length && countSealed() > 0 && draft.streaming) break;
        if (index >= posted.length) return { type: "post", draft };
        if (shown[index] === JSON.stringify(draft)) continue;
        // New text is more urgent than removing outdated buttons.
        const hasMore = countSealed() + drafts.length > posted.length;
        if (hasMore && taken[index]?.markdown === draft.markdown) continue;
        return { type: "edit", index, draft };
      }
      // While the text grows, an earlier attempt's messages can still be needed.
      if (!isOver) return undefined;
      // Posting again finds an uncertain message, so that it can be removed. The post contains none of the reply's
      // text.
      if (record.isPosting) return { type: "post", draft: PROBE };
      // An earlier attempt uploaded a different file.
      if (posted.length > countSealed() + drafts.length + (isUploaded ? 1 : 0)) return { type: "remove" };
      return file === undefined || isUploaded ? undefined : { type: "upload", file };
    },
    apply(change) {
      if (change.type === "post") return post(change.draft);
      if (change.type === "upload") return upload(change.file);
      return change.type === "edit" ? edit(change.index, change.draft) : removeLast();
    },
    isUnseen: (index) => shown[index] === undefined,
    takenAt: (index) => taken[index],
    markAsShown: (index, draft) => void (shown[index] = JSON.stringify(draft)),
    forget,
  };
}

function isUncertain(error: unknown): boolean {
  return !(error instanceof SinkError) || error.kind === "unavailable";
}
