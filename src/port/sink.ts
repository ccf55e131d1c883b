import type { Action, AttachmentRef } from "./events.ts";
import type { BudgetHeaders, ReplyBudget } from "./pace.ts";

export interface Button {
  action: Action;
  /** As in `ActionEvent`. */
  turnId: string;
  label: string;
}

/** One message as it should look. Markdown, already neutralised and within `limits`. */
export interface Draft {
  markdown: string;
  /**
   * While it streams: the text as it came, with what is open left open, so that the next draft most often adds to it.
   */
  source?: string;
  /** The steps of the turn so far, in the order they began; where the platform shows none, with the last draft alone. */
  steps?: readonly Step[];
  buttons: Button[];
  /** More text is coming: the platform may show that in its own way. */
  streaming: boolean;
}

/** One thing that is done on the way to an answer, such as a call of a tool. Its id is unique within the reply. */
export interface Step {
  id: string;
  /** In a few plain words, such as "looking up the time in Tokyo". Untrusted text. */
  title: string;
  state: "running" | "done" | "failed";
  /** The answer ended while this step ran: a user stopped it, or it failed. */
  cutBy?: "stop" | "error";
  /** Times of the beginning and the end, in milliseconds of one monotonic clock. */
  begunAt?: number;
  endedAt?: number;
  /** While it runs: how long it has, as people were told last. */
  runningMs?: number;
}

export interface OutboundFile {
  name: string;
  contentType: string;
  bytes: Uint8Array;
  /** Describes it to those who cannot see it. */
  altText?: string;
  /** Covered until somebody wants to see it, where the platform can do that. */
  isSpoiler?: boolean;
}

export interface SinkLimits {
  /** Longest message, in the unit that `lengthOf` counts. */
  maxLength: number;
  lengthOf(text: string): number;
  /** Longest that a growing message gets before it ends at a good place; absent: it is filled. */
  keptLength?: number;
  maxFileBytes: number;
  /** A reply that needs more messages shows the first of them, this many, and comes whole as a file; absent: no limit. */
  maxMessages?: number;
}

/** The platform's word with a call it accepted. */
export interface Receipt {
  /** The message does not show the whole draft yet: it is to be written again. */
  isPartial?: boolean;
  /** Its counter behind `ReplySink.budget`, where it tells. */
  budget?: BudgetHeaders;
}

export interface Posted extends Receipt {
  /** `{platform}:…` */
  id: string;
  /** The files of an upload in order, as `openAttachment` opens them. */
  attachments?: AttachmentRef[];
}

/**
 * A second way of writing with limits of its own, for when the first has no room or is not offered. Never left again.
 */
export interface Fallback {
  readonly isActive: boolean;
  activate(): void;
}

/** Writes one reply. One call in flight per message. A rate limit is a `SinkError`, never a sleep inside. */
export interface ReplySink {
  readonly limits: SinkLimits;
  /** The rate limit that this reply's calls share with others, and the policy that keeps it. */
  readonly budget: ReplyBudget;
  /** Names the place whose limit on posts this reply shares with others, where the platform has one; absent: it is alone. */
  readonly room?: string;
  /** Absent where there is one way of writing. Taken by the core before a post, and by the sink in any call. */
  readonly fallback?: Fallback;
  /** The steps of a draft are shown beside its text, except where it is written by the fallback. */
  readonly showsSteps?: boolean;
  /** A quote that begins with the mark in `folded-quote.ts` is shown folded. */
  readonly foldsQuotes?: boolean;
  /** Buttons for second thoughts are shown under a complete answer: to ask once more, to judge it and the like. */
  readonly supportsSecondThoughts?: boolean;
  /** A wait is told in the reply, with Stop: `progress` cannot show both. */
  readonly tellsWaits?: boolean;
  /** While it shows progress the platform has a Stop of its own: only a wait that lasts is told in the reply. */
  readonly hasOwnStop?: boolean;
  /** Posts a message. The same nonce never makes a second message: its post resolves to the first one. */
  post(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** The same for a nonce that no earlier attempt can have posted with; absent where that makes no difference. */
  postFirst?(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Posts files as one message, under a caption where one is given. The same nonce never makes a second message. */
  upload(files: OutboundFile[], caption: Draft | undefined, nonce: string, signal: AbortSignal): Promise<Posted>;
  /**
   * Shows at a person's message that it waits for its turn, or takes that away. Resolves to false where the platform's
   * limits do not allow that at the moment. Absent where the platform shows it by itself, or cannot.
   */
  markWaiting?(messageId: string, isWaiting: boolean, signal: AbortSignal): Promise<boolean>;
  /** Takes a message of ours back. Resolves also when it is gone already. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Shows what is being done before there is text, with `stop` where the platform can; "" takes it away. Best effort, as
   * in `adapter.ts`.
   */
  progress(text: string, signal: AbortSignal, stop?: Button): Promise<void>;
}
