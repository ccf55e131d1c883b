import type { Source } from "../text/sources.ts";
import type { Action, AttachmentRef } from "./events.ts";
import type { BudgetHeaders, ReplyBudget } from "./pace.ts";

export interface Button {
  action: Action;
  /** The same id as in `ActionEvent`. */
  turnId: string;
  label: string;
}

/** The intended state of one message. The Markdown is already neutralized and within `limits`. */
export interface Draft {
  markdown: string;
  /** While streaming: the text as it arrived, with open markup left open. The next draft usually only adds text. */
  source?: string;
  /** The turn's steps, in the order of their start. If the platform shows no steps, only the last draft has them. */
  steps?: readonly Step[];
  buttons: Button[];
  /** True while more text is coming; the platform can show that in its own way. */
  streaming: boolean;
}

/** A step toward an answer, such as a tool call. The id is unique within the reply. */
export interface Step {
  id: string;
  /** In a few plain words, such as "looking up the time in Tokyo". Untrusted text. */
  title: string;
  state: "running" | "done" | "failed";
  /** Set if the answer ended while this step ran: a user stopped it, or it failed. */
  cutBy?: "stop" | "error";
  /** Start and end in milliseconds of one monotonic clock. */
  begunAt?: number;
  endedAt?: number;
  /** How long a running step has taken, as people last saw it. */
  runningMs?: number;
  /** The pages that the step read; absent while it runs. */
  sources?: readonly Source[];
}

export interface OutboundFile {
  name: string;
  contentType: string;
  bytes: Uint8Array;
  /** Describes the file to people who cannot see it. */
  altText?: string;
  /** Set if the file stays covered until a person chooses to see it, on platforms with that feature. */
  isSpoiler?: boolean;
}

export interface SinkLimits {
  /** The longest message, in the unit of `lengthOf`. */
  maxLength: number;
  lengthOf(text: string): number;
  /** A growing message ends at the last good break before this length. Absent: messages are filled completely. */
  keptLength?: number;
  maxFileBytes: number;
  /** Maximum number of messages that a reply shows. A longer reply also comes complete as a file. Absent: no limit. */
  maxMessages?: number;
}

export interface Receipt {
  /** Set if the message does not show the whole draft yet. The caller then writes the draft again. */
  isPartial?: boolean;
  /** The counter of `ReplySink.budget`, if the platform reports it. */
  budget?: BudgetHeaders;
}

export interface Posted extends Receipt {
  /** Starts with `{platform}:`. */
  id: string;
  /** The uploaded files in order, as `openAttachment` opens them. */
  attachments?: AttachmentRef[];
}

/** A second way of writing, for when the first way is at its limit or unavailable. A reply never switches back. */
export interface Fallback {
  readonly isActive: boolean;
  activate(): void;
}

/** The features of replies on a platform. An absent feature is not supported. */
export interface SinkTraits {
  /** The platform shows a draft's steps next to its text, except when the fallback writes the reply. */
  readonly steps?: boolean;
  /** The platform folds a quote that starts with the mark in `folded-quote.ts`. */
  readonly foldedQuotes?: boolean;
  /** The platform shows buttons under a complete answer: ask again, rate it, and so on. */
  readonly secondThoughts?: boolean;
  /**
   * When the reply itself shows that it waits, with a Stop button. `soon`: early, because `progress` cannot show both
   * the notice and the button. `late`: only after a while, because the platform first shows its own Stop button.
   */
  readonly waits?: "soon" | "late";
  /** Set if everyone in the channel sees this reply, although it is meant for one person. */
  readonly isPublic?: true;
}

/** Writes one reply, with one call at a time per message. At a rate limit, it rejects instead of waiting. */
export interface ReplySink {
  readonly limits: SinkLimits;
  /** The rate limit that this reply shares with others, and the policy that respects the limit. */
  readonly budget: ReplyBudget;
  /** Replies with the same room share the platform's limit on posts. Absent: the limit is this reply's own. */
  readonly room?: string;
  /** A second way of writing, if there is one. The core can activate it before a post, the sink in any call. */
  readonly fallback?: Fallback;
  /** Absent: the platform shows only plain text with buttons. */
  readonly traits?: SinkTraits;
  /**
   * Posts a message. If a post with this nonce was made before, makes no second message and resolves to the first one.
   * `isFirst`: no earlier attempt can have used the nonce, so the sink does not search for an existing message.
   */
  post(draft: Draft, nonce: string, signal: AbortSignal, isFirst?: boolean): Promise<Posted>;
  /** Makes a message of this reply show the draft. */
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Posts files as one message, with a caption if there is one. The same nonce never makes a second message. */
  upload(files: OutboundFile[], caption: Draft | undefined, nonce: string, signal: AbortSignal): Promise<Posted>;
  /**
   * Marks a person's message as waiting, or removes the mark. Resolves to false if the platform's limits do not allow
   * that at the moment. Absent if the platform shows waiting automatically, or cannot mark a message.
   */
  markWaiting?(messageId: string, isWaiting: boolean, signal: AbortSignal): Promise<boolean>;
  /** Removes a message of the bot. Also resolves if the message no longer exists. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Shows people what the bot is doing before there is text, with the `stop` button if the platform supports it. An
   * empty text removes the notice. Best effort, as in `adapter.ts`.
   */
  progress(text: string, signal: AbortSignal, stop?: Button): Promise<void>;
}
