import { z } from "zod";
import { isTakenUp } from "../concurrency/fence.ts";
import { SinkError } from "../port/errors.ts";
import { toNonce } from "../port/ids.ts";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../port/sink.ts";
import { sealed } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";

/** Lets a reply be taken up again after a crash. Holds text only until the reply has ended. */
export type ReplyRecord = z.infer<typeof replyRecord>;

/** The oldest records lack the fields that have a default. */
export const replyRecord = z.object({
  id: z.string(),
  posted: z.array(z.string()),
  /** The number of messages that were posted and taken back: their nonces are used up. */
  removed: z.number().default(0),
  /**
   * One more message may have been posted, or not. Posted again, with the same nonce, it is found.
   */
  isPosting: z.boolean().default(false),
  /** The most of the model's text that people can have seen, in UTF-16 units: a reply taken up again shows no less. */
  seen: z.number().default(0),
  /** The model's text as it was when `seen` was noted last; absent where nobody can go on from it. */
  said: z.string().exactOptional(),
  /** True where the model had come to its end with `said`: only showing it may be left. */
  isSaidWhole: z.boolean().exactOptional(),
  /** Messages of the reply that take no changes any more; absent: none. */
  sealed: sealed.exactOptional(),
});

export interface ReplyMessagesOptions {
  sink: ReplySink;
  /** Changes with what is on the platform. */
  record: ReplyRecord;
  /** An earlier attempt may have posted more than the record says. */
  isResumed: boolean;
  /** Called when the record has changed, before anything else is written. */
  onRecord(): Promise<void>;
}

/** Posted once more under the nonce of a post of which nobody knows whether it was carried out, to be removed then. */
export const PROBE: Draft = { markdown: "…", buttons: [], streaming: false };
/** The look of a message with a file; no draft looks like it. */
const FILE = "file";

/** One call that brings the platform nearer to what should be shown. */
export type Change =
  | { type: "post"; draft: Draft }
  | { type: "edit"; index: number; draft: Draft }
  | { type: "upload"; file: OutboundFile }
  | { type: "remove" };

/** The messages of one reply as they stand on the platform. */
export interface ReplyMessages {
  /** The most urgent difference from the drafts and the file after them; `isOver`: no further drafts come. */
  nextChange(drafts: readonly Draft[], file: OutboundFile | undefined, isOver: boolean): Change | undefined;
  /** Makes the call. Rejects with what the platform refused. */
  apply(change: Change): Promise<Receipt>;
  /** True when an earlier attempt left a message here of which this one has seen nothing. */
  isUnseen(index: number): boolean;
  /** The draft that a message shows at least, as far as this attempt knows; undefined for one of an earlier one. */
  takenAt(index: number): Draft | undefined;
  /** Takes a message to show this draft, though the platform has not said so. */
  markAsShown(index: number, draft: Draft): void;
  /** Takes a message off the record that is no longer on the platform. */
  forget(index: number): Promise<void>;
}

export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { sink, record, isResumed, onRecord } = options;
  const { posted } = record;
  /** The look of each posted message, as far as this attempt knows: unknown for those of an earlier one. */
  const shown: Array<string | undefined> = posted.map(() => undefined);
  /** The last draft known to be shown in full, by message. */
  const taken: Array<Draft | undefined> = posted.map(() => undefined);
  /** The draft of a post of this attempt of which nobody knows whether it was carried out. */
  let doubtful: Draft | undefined;
  let isUploaded = false;

  const countSealed = () => record.sealed?.count ?? 0;

  async function post(draft: Draft): Promise<Receipt> {
    try {
      const receipt = await add(JSON.stringify(draft), (nonce, signal, mayExist) => {
        const post = mayExist ? sink.post : (sink.postFirst ?? sink.post);
        return post(draft, nonce, signal);
      });
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

  /** Makes one more message; `look` is what it then shows. */
  async function add(
    look: string,
    make: (nonce: string, signal: AbortSignal, mayExist: boolean) => Promise<Posted>,
  ): Promise<Receipt> {
    // A post that an earlier attempt made is found by its nonce, and shows the text of that attempt. Where the store was
    // away its record may know of none.
    const mayExist = isResumed || record.isPosting || isTakenUp();
    record.isPosting = true;
    // The record says from the beginning that the first one may be under way.
    if (posted.length > 0) await onRecord();
    const { id, ...receipt } = await callPlatform((signal) => make(toNonce(record), signal, mayExist));
    posted.push(id);
    shown.push(mayExist || receipt.isPartial === true ? undefined : look);
    record.isPosting = false;
    await onRecord();
    return receipt;
  }

  async function edit(index: number, draft: Draft): Promise<Receipt> {
    const id = posted[index];
    if (id === undefined) return {};
    const receipt = await callPlatform((signal) => sink.edit(id, draft, signal));
    shown[index] = receipt.isPartial === true ? undefined : JSON.stringify(draft);
    if (receipt.isPartial !== true) taken[index] = draft;
    return receipt;
  }

  async function removeLast(): Promise<Receipt> {
    const id = posted.at(-1);
    if (id !== undefined) await callPlatform((signal) => sink.remove(id, signal));
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
        // The next message may take no changes either, so it comes when it is whole.
        if (index >= posted.length && countSealed() > 0 && draft.streaming) break;
        if (index >= posted.length) return { type: "post", draft };
        if (shown[index] === JSON.stringify(draft)) continue;
        // Text that nobody has seen goes before buttons that are no longer needed.
        const hasMore = countSealed() + drafts.length > posted.length;
        if (hasMore && taken[index]?.markdown === draft.markdown) continue;
        return { type: "edit", index, draft };
      }
      // While text still grows, messages of an earlier attempt may be needed again.
      if (!isOver) return undefined;
      // A message that nobody can name cannot be removed. Where there is none, people see no text twice.
      if (record.isPosting) return { type: "post", draft: PROBE };
      // An earlier attempt uploaded another file than this one would.
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
