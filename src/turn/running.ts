import { cut } from "../concurrency/cut.ts";
import {
  type ActionEvent,
  type Author,
  type CommandEvent,
  type DeletedEvent,
  type EditedEvent,
  type InboundEvent,
  isSpokenStop,
  type MessageEvent,
} from "../port/events.ts";
import { foldBatch } from "./batch.ts";
import type { TurnRecord } from "./record.ts";
import { mayPress } from "./rights.ts";

export interface Beginning {
  controller: AbortController;
  /** The turn's messages as they stand after `changes`, where they are at hand. */
  messages: MessageEvent[];
  /** False: the history has not taken all of them. */
  areStored: boolean;
  /** People's changes to them since the attempt before. */
  changes: Array<EditedEvent | DeletedEvent>;
  /** The first request is made although the model is left alone at the moment. */
  mustAsk: boolean;
  /** The person who had the answer begin once more; absent: nobody. */
  pressedBy?: Author;
  /** The person who stopped the attempt; undefined: nobody has. */
  stoppedBy(): Author | undefined;
  /** Sentences for the person, to stand under the answer. */
  notices: readonly string[];
}

/** A turn that is being answered, and what people do to it meanwhile. */
export interface RunningTurn {
  readonly record: TurnRecord;
  /** Lets a change or a stop of this turn interrupt the attempt. Somebody else's stop is refused. */
  notice(event: InboundEvent): "refused" | undefined;
  missStore(): void;
  /** Adds a note under the answer. */
  tell(notice: string): void;
  /** Gives the turn up: the next attempt ends at once, and says so. */
  giveUp(): void;
  /** Takes what came so far; the record then names only the messages that are still there. */
  begin(): Beginning;
  /** True when another attempt is needed after one that ended so. */
  mustGoOn(result: AttemptResult): boolean;
  /** Changes and stops whose effect is part of the turn. */
  taken(): readonly InboundEvent[];
}

export function createRunningTurn(
  record: TurnRecord,
  known: readonly MessageEvent[],
  { mustAsk = false, pressedBy }: Partial<Pick<Beginning, "mustAsk" | "pressedBy">> = {},
): RunningTurn {
  const taken: InboundEvent[] = [];
  const notices: string[] = [];
  /** Text and attachments of each message, where they are known: what tells an edit from an echo. */
  const bodies = new Map(known.map((message) => [message.messageId, bodyOf(message)]));
  let messages = [...known];
  let pending: Array<EditedEvent | DeletedEvent> = [];
  let stoppedBy: Author | undefined;
  let isGivenUp = false;
  let areStored = true;
  let controller = new AbortController();

  function stop(event: ActionEvent | CommandEvent): "refused" | undefined {
    if (!mayPress(event, record)) return "refused";
    stoppedBy = event.author;
    taken.push(event);
    cut(controller, "stopped");
    return undefined;
  }

  function change(event: EditedEvent | DeletedEvent): void {
    if (!record.messageIds.includes(event.messageId)) return;
    if (event.kind === "edited") {
      // Platforms send an edit also for what they add themselves, such as a preview.
      if (bodies.get(event.messageId) === bodyOf(event)) return;
      bodies.set(event.messageId, bodyOf(event));
    }
    pending.push(event);
    cut(controller, "superseded");
  }

  return {
    record,
    notice(event) {
      const isPressed = event.kind === "action" && event.action === "stop" && event.turnId === record.id;
      const isSaid = isSpokenStop(event) && event.conversationId === record.conversationId;
      if (isPressed || isSaid) return stop(event);
      if (event.kind === "edited" || event.kind === "deleted") change(event);
      return undefined;
    },
    missStore() {
      areStored = false;
    },
    tell: (notice) => void notices.push(notice),
    giveUp() {
      isGivenUp = true;
    },
    begin() {
      const own = new Set(record.messageIds);
      const changes = pending.filter(({ messageId }) => own.has(messageId));
      pending = [];
      taken.push(...changes);
      messages = foldBatch([...messages.filter(({ messageId }) => own.has(messageId)), ...changes]);
      const deleted = changes.filter(({ kind }) => kind === "deleted").map(({ messageId }) => messageId);
      record.messageIds = record.messageIds.filter((id) => !deleted.includes(id));
      controller = new AbortController();
      if (stoppedBy !== undefined) cut(controller, "stopped");
      // Nothing is left of it but to show what there is.
      if (isGivenUp && record.isSaidWhole !== true) cut(controller, "given-up");
      return { controller, messages, areStored, changes, mustAsk, pressedBy, notices, stoppedBy: () => stoppedBy };
    },
    mustGoOn(result) {
      if (result === "superseded") return true;
      // A stopped turn begins again by nothing but Retry, and goes away with its question.
      if (stoppedBy === undefined && !isGivenUp) return pending.length > 0;
      return record.messageIds.every((id) =>
        pending.some((event) => event.kind === "deleted" && event.messageId === id),
      );
    },
    taken: () => taken,
  };
}

function bodyOf({ text, attachments }: MessageEvent | EditedEvent): string {
  return JSON.stringify([text, attachments.map(({ id }) => id)]);
}

/**
 * `superseded`: the messages changed while they were answered, and the answer has to begin again. `forgotten`: the
 * person who asked is being erased, so nothing was kept and what was posted is to go.
 */
export type AttemptResult = "ended" | "superseded" | "forgotten";
