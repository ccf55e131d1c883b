import { z } from "zod";
import { SinkError } from "../port/errors.ts";
import { toNonce } from "../port/ids.ts";
import type { Right } from "../port/right.ts";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../port/sink.ts";
import { source } from "../port/source.ts";
import { sealed } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";

/** The state from which a reply can resume after a crash. Contains text only until the reply has ended. */
export type ReplyRecord = z.infer<typeof replyRecord>;

export const replyRecord = z.object({
  id: z.string(),
  posted: z.array(z.string()),
  /** The number of posted messages that were removed again. Their nonces cannot be used again. */
  removed: z.number(),
  /** True if a post's outcome is unknown. Repeating the post with the same nonce finds a message that exists. */
  isPosting: z.boolean(),
  /**
   * The most of the model's text that people can have seen, in UTF-16 units. A resumed reply shows at least as much.
   */
  seen: z.number(),
  /** The model's text when it was last noted. Absent if no process can continue the text. */
  shownText: z.string().exactOptional(),
  /** True if `shownText` is the model's whole answer. */
  isShownWhole: z.boolean().exactOptional(),
  /** The pages that the gateway cited for `shownText`. */
  cited: z.array(source).exactOptional(),
  sealed: sealed.exactOptional(),
});

export interface ReplyMessagesOptions {
  /** The sink, created with the same `right`. */
  sink: ReplySink;
  right: Right;
  record: ReplyRecord;
  /** True if an earlier attempt may have posted more than the record says. */
  isResumed: boolean;
  /** Called after each change of the record. The next call waits for it. */
  onRecord(): Promise<void>;
}

/**
 * If a post's outcome is unknown, this text is posted with the same nonce to find the message, which is then removed.
 */
export const PROBE: Draft = { markdown: "…", buttons: [], streaming: false };
/** Marks a message with a file in the list of shown drafts. */
const FILE = "file";

export type Change =
  | { type: "post"; draft: Draft }
  | { type: "edit"; index: number; draft: Draft }
  | { type: "upload"; file: OutboundFile }
  | { type: "remove" };

/** The messages of one reply as the platform shows them. */
export interface ReplyMessages {
  /**
   * Returns the most urgent change that brings the platform closer to the drafts and the file. `isOver` is true if no
   * further drafts follow.
   */
  nextChange(drafts: readonly Draft[], file: OutboundFile | undefined, isOver: boolean): Change | undefined;
  /** Makes the call for a change. Rejects with the platform's refusal. */
  apply(change: Change): Promise<Receipt>;
  /** True if it is unknown what this message shows, for example because only an earlier attempt wrote it. */
  isUnseen(index: number): boolean;
  /** The last draft that this message certainly shows in full. Undefined for a message of an earlier attempt. */
  takenAt(index: number): Draft | undefined;
  /** Assumes that the message shows this draft, although the platform has not confirmed that. */
  markAsShown(index: number, draft: Draft): void;
  /** Removes a message from the record, because it is no longer on the platform. */
  forget(index: number): Promise<void>;
}

export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { sink, right, record, isResumed, onRecord } = options;
  const { posted } = record;
  /**
   * For each message, the draft that it shows as JSON, or `FILE`. Undefined if it is unknown what the message shows.
   */
  const shown: Array<string | undefined> = posted.map(() => undefined);
  const taken: Array<Draft | undefined> = posted.map(() => undefined);
  /** The draft of a post whose outcome is unknown. */
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

  /** Posts a further message. `look` is the new message's value in `shown`. */
  async function add(
    look: string,
    make: (nonce: string, signal: AbortSignal, mayExist: boolean) => Promise<Posted>,
  ): Promise<Receipt> {
    // If an earlier attempt already made this post, repeating it returns that attempt's message with its old text. The
    // record can lack that message, because the store may have been unavailable.
    const mayExist = isResumed || record.isPosting || right.isResumed;
    record.isPosting = true;
    // The stored record of a turn without messages already says that a post may be in flight.
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
        // The next message may accept no edits either, so it is posted only when it is complete.
        if (index >= posted.length && countSealed() > 0 && draft.streaming) break;
        if (index >= posted.length) return { type: "post", draft };
        if (shown[index] === JSON.stringify(draft)) continue;
        // New text is more urgent than removing outdated buttons.
        const hasMore = countSealed() + drafts.length > posted.length;
        if (hasMore && taken[index]?.markdown === draft.markdown) continue;
        return { type: "edit", index, draft };
      }
      // While the text grows, it can still need the messages of an earlier attempt, so none is removed.
      if (!isOver) return undefined;
      // Repeats an uncertain post to find a message that may exist. The message is then removed.
      if (record.isPosting) return { type: "post", draft: PROBE };
      // Also removes the file of an earlier attempt, because that file is different.
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
