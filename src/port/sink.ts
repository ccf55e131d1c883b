import type { Source } from "../text/sources.ts";
import type { Action, AttachmentRef } from "./events.ts";
import type { BudgetHeaders, ReplyBudget } from "./pace.ts";

export interface Button {
  action: Action;
  /** As in `ActionEvent`. */
  turnId: string;
  label: string;
}

/** One message as it should look: Markdown, already neutralized and within `limits`. */
export interface Draft {
  markdown: string;
  /**
   * While streaming: the text as it arrived, with open markup left open, so that the next draft usually only adds to
   * it.
   */
  source?: string;
  /**
   * The steps of the turn so far, in order of their start; if the platform shows no steps, only with the last draft.
   */
  steps?: readonly Step[];
  buttons: Button[];
  /** More text is coming: the platform may show that in its own way. */
  streaming: boolean;
}

/** One step toward an answer, such as a tool call. Its id is unique within the reply. */
export interface Step {
  id: string;
  /** In a few plain words, such as "looking up the time in Tokyo". Untrusted text. */
  title: string;
  state: "running" | "done" | "failed";
  /** The answer ended while this step ran: a user stopped it, or it failed. */
  cutBy?: "stop" | "error";
  /** Times of the start and the end, in milliseconds of one monotonic clock. */
  begunAt?: number;
  endedAt?: number;
  /** While it runs: its duration, as last shown. */
  runningMs?: number;
  /** The pages that it read, once it is done. */
  sources?: readonly Source[];
}

export interface OutboundFile {
  name: string;
  contentType: string;
  bytes: Uint8Array;
  /** Describes it to people who cannot see it. */
  altText?: string;
  /** Covered until a person uncovers it, if the platform can do that. */
  isSpoiler?: boolean;
}

export interface SinkLimits {
  /** Longest message, in the unit of `lengthOf`. */
  maxLength: number;
  lengthOf(text: string): number;
  /** Longest growing message before it ends at a good place; absent: it is filled completely. */
  keptLength?: number;
  maxFileBytes: number;
  /** A longer reply shows only this many messages and comes complete as a file; absent: no limit. */
  maxMessages?: number;
}

/** The platform's report with an accepted call. */
export interface Receipt {
  /** The message does not show the whole draft yet: write it again. */
  isPartial?: boolean;
  /** Its counter for `ReplySink.budget`, if it reports one. */
  budget?: BudgetHeaders;
}

export interface Posted extends Receipt {
  /** `{platform}:…` */
  id: string;
  /** The files of an upload in order, as `openAttachment` opens them. */
  attachments?: AttachmentRef[];
}

/**
 * A second way of writing with its own limits, for when the first has no room or is unavailable. A reply never returns
 * from it.
 */
export interface Fallback {
  readonly isActive: boolean;
  activate(): void;
}

/** The features of a reply. Absent ones are not supported. */
export interface SinkTraits {
  /** Shows the steps of a draft next to its text, except when the fallback writes it. */
  readonly steps?: boolean;
  /** Folds a quote that starts with the mark in `folded-quote.ts`. */
  readonly foldedQuotes?: boolean;
  /** Shows buttons under a complete answer: ask again, rate it, and so on. */
  readonly secondThoughts?: boolean;
  /**
   * When the reply itself shows that it waits, with a Stop button: `soon`, because `progress` cannot show both; `late`,
   * because the platform shows its own Stop for a while.
   */
  readonly waits?: "soon" | "late";
  /** Everyone in the channel sees this reply, although it is for one person. */
  readonly isPublic?: true;
}

/** Writes one reply. One call in flight per message. A rate limit is a `SinkError`, never a sleep inside. */
export interface ReplySink {
  readonly limits: SinkLimits;
  /** The rate limit that this reply shares with others, and the policy that respects it. */
  readonly budget: ReplyBudget;
  /** Names the place whose limit on posts this reply shares, if the platform has one; absent: the reply shares none. */
  readonly room?: string;
  /** Absent if there is only one way of writing. The core can switch to it before a post, and the sink in any call. */
  readonly fallback?: Fallback;
  /** The look of replies here; absent: plain text with buttons. */
  readonly traits?: SinkTraits;
  /**
   * Posts a message. The same nonce never makes a second message: its post resolves to the first one. `isFirst`: no
   * earlier attempt can have used the nonce, so the sink does not look for a message.
   */
  post(draft: Draft, nonce: string, signal: AbortSignal, isFirst?: boolean): Promise<Posted>;
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Posts files as one message, under the caption, if any. The same nonce never makes a second message. */
  upload(files: OutboundFile[], caption: Draft | undefined, nonce: string, signal: AbortSignal): Promise<Posted>;
  /**
   * Marks a person's message as waiting, or removes that mark. Resolves to false if the platform's limits do not allow
   * it at the moment. Absent if the platform shows waiting automatically, or has no such mark.
   */
  markWaiting?(messageId: string, isWaiting: boolean, signal: AbortSignal): Promise<boolean>;
  /** Removes a message of the bot. Also resolves if it is gone already. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Shows the current activity before there is text, with `stop` if the platform supports it; "" removes it. Best
   * effort, as in `adapter.ts`.
   */
  progress(text: string, signal: AbortSignal, stop?: Button): Promise<void>;
}
