import { z } from "zod";
import { SinkError } from "../port/errors.ts";
import { toNonce } from "../port/ids.ts";
import type { Right } from "../port/right.ts";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../port/sink.ts";
import { source } from "../port/source.ts";
import { sealed } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";

/** Lets a reply resume after a crash. Has text only until the reply has ended. */
export type ReplyRecord = z.infer<typeof replyRecord>;

export const replyRecord = z.object({
  id: z.string(),
  posted: z.array(z.string()),
  /** The number of posted messages that were removed again. Their nonces are used up. */
  removed: z.number(),
  /** True if a further message may exist. Repeating the post with the same nonce finds it. */
  isPosting: z.boolean(),
  /** How much of the model's text people can have seen, in UTF-16 units. A resumed reply shows no less. */
  seen: z.number(),
  /** The model's text at the last note. Absent if it cannot be continued. */
  shownText: z.string().exactOptional(),
  /** True if `shownText` is complete. */
  isShownWhole: z.boolean().exactOptional(),
  /** The pages that the gateway cited for `shownText`. */
  cited: z.array(source).exactOptional(),
  sealed: sealed.exactOptional(),
});

export interface ReplyMessagesOptions {
  /** Created with `right`. */
  sink: ReplySink;
  right: Right;
  record: ReplyRecord;
  /** True if an earlier attempt may have posted more than the record says. */
  isResumed: boolean;
  /** Called after each change of the record, before the next call. */
  onRecord(): Promise<void>;
}

/** Posted to find the message of an uncertain post by its nonce, and then removed. */
export const PROBE: Draft = { markdown: "…", buttons: [], streaming: false };
/** The state of a message with a file. */
const FILE = "file";

export type Change =
  | { type: "post"; draft: Draft }
  | { type: "edit"; index: number; draft: Draft }
  | { type: "upload"; file: OutboundFile }
  | { type: "remove" };

/** The messages of one reply as the platform shows them. */
export interface ReplyMessages {
  /**
   * The most urgent difference between the drafts with the file, and the platform. `isOver`: no further drafts follow.
   */
  nextChange(drafts: readonly Draft[], file: OutboundFile | undefined, isOver: boolean): Change | undefined;
  /** Rejects with the platform's refusal. */
  apply(change: Change): Promise<Receipt>;
  /** True if only an earlier attempt wrote this message. */
  isUnseen(index: number): boolean;
  /** The last draft that the message certainly shows. Undefined for an earlier attempt's message. */
  takenAt(index: number): Draft | undefined;
  /** Assumes that the message shows this draft. */
  markAsShown(index: number, draft: Draft): void;
  /** The message is no longer on the platform. */
  forget(index: number): Promise<void>;
}

export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { sink, right, record, isResumed, onRecord } = options;
  const { posted } = record;
  /** The state of each message. Undefined if it is unknown. */
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

  /** `look` is the state of the new message. */
  async function add(
    look: string,
    make: (nonce: string, signal: AbortSignal, mayExist: boolean) => Promise<Posted>,
  ): Promise<Receipt> {
    // Repeating an earlier attempt's post returns that attempt's message with its old text. After an outage, the record
    // may lack that message.
    const mayExist = isResumed || record.isPosting || right.isResumed;
    record.isPosting = true;
    // The record of a turn without messages already says this.
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
        // The next message may accept no edits either, so it must be complete.
        if (index >= posted.length && countSealed() > 0 && draft.streaming) break;
        if (index >= posted.length) return { type: "post", draft };
        if (shown[index] === JSON.stringify(draft)) continue;
        // Outdated buttons are less urgent than new text.
        const hasMore = countSealed() + drafts.length > posted.length;
        if (hasMore && taken[index]?.markdown === draft.markdown) continue;
        return { type: "edit", index, draft };
      }
      // A growing text can still need an earlier attempt's messages.
      if (!isOver) return undefined;
      // Finds a message that may exist, so that it can be removed.
      if (record.isPosting) return { type: "post", draft: PROBE };
      // Counts an earlier attempt's file as surplus, because that file differs.
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
