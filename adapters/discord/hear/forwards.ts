import { MessageType } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { timeOf } from "../ids.ts";
import type { Message } from "./wording.ts";

/** How long a forward waits for its comment. The client sends the comment when Discord has stored the forward. */
const WAIT_MS = 1_500;
const SPAN_MS = 5_000;
const MAX_KNOWN = 500;

/**
 * Joins forwards with their comments, because Discord's clients send the two as separate messages, the forward first.
 * Together they are one question.
 */
export interface Forwards {
  /** Call this for each new message of a channel, in order. Returns a comment joined with its forward. */
  see(message: Message): Message;
  /**
   * Waits briefly for a comment on a forward. True if a comment came: then the comment asks the question, not the
   * forward.
   */
  isCommented(message: Message): Promise<boolean>;
  edited(message: Message): Message;
  /** Forgets a deleted forward. Returns its comment without the forward; undefined if it has no comment. */
  deleted(id: string): Message | undefined;
}

export function createForwards(waitMs = WAIT_MS): Forwards {
  /** The forwards whose authors have not written since, by place and author. */
  const open = new BoundedMap<string, { forward: Message; commented: PromiseWithResolvers<true> }>(MAX_KNOWN);
  /** Forwards, by their comments' ids. */
  const forwards = new BoundedMap<string, Message>(MAX_KNOWN);
  /** Comments, by their forwards' ids. */
  const comments = new BoundedMap<string, Message>(MAX_KNOWN);

  return {
    see(message) {
      const key = toKey(message);
      const before = open.get(key);
      open.delete(key);
      // A resumed session can repeat a forward that already has its comment.
      const isNew = isForward(message) && !comments.has(message.id);
      if (isNew) open.set(key, { forward: message, commented: Promise.withResolvers<true>() });
      if (before === undefined || !isCommentOn(message, before.forward)) return message;
      before.commented.resolve(true);
      forwards.set(message.id, before.forward);
      comments.set(before.forward.id, message);
      return { ...message, comments_on: before.forward };
    },
    async isCommented(message) {
      if (comments.has(message.id)) return true;
      const key = toKey(message);
      const waiting = open.get(key);
      if (waiting?.forward.id !== message.id) return false;
      if ((await waitAtMost(waiting.commented.promise, waitMs)) === true) return true;
      // From now on the forward is a separate question, so no later message includes it.
      if (open.get(key) === waiting) open.delete(key);
      return false;
    },
    edited(message) {
      const forward = forwards.get(message.id);
      if (forward === undefined) return message;
      if (comments.has(forward.id)) comments.set(forward.id, message);
      return { ...message, comments_on: forward };
    },
    deleted(id) {
      const comment = comments.get(id);
      if (comment !== undefined) forwards.delete(comment.id);
      return comment;
    },
  };
}

function toKey({ channel_id, author }: Message): string {
  return `${channel_id} ${author.id}`;
}

/** A forward has no text from the user who forwards it. */
function isForward({ message_snapshots: forwarded = [], content }: Message): boolean {
  return forwarded.length > 0 && content === "";
}

function isCommentOn({ id, type, message_reference: reference, content }: Message, forward: Message): boolean {
  const isPlain = type === MessageType.Default && reference === undefined && content !== "";
  return isPlain && timeOf(id) - timeOf(forward.id) <= SPAN_MS;
}
