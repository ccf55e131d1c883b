import { abortWith } from "../concurrency/abort.ts";
import { BoundedMap } from "../concurrency/bounded-map.ts";
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
import { readPictureId } from "../port/ids.ts";
import { foldBatch } from "./questions.ts";
import type { PictureTurn, TurnRecord } from "./record.ts";
import { canManage, NOT_YOURS } from "./rights.ts";

export interface Beginning {
  controller: AbortController;
  /** The questions after `changes` were applied. Empty if only the store has the questions. */
  messages: MessageEvent[];
  /** False if some of the questions could not be stored in the history. */
  areStored: boolean;
  /** People's changes to the questions since the previous attempt. */
  changes: Array<EditedEvent | DeletedEvent>;
  /** If true, the first request ignores an open circuit breaker. */
  mustAsk: boolean;
  /** The person who pressed Retry. Absent for a first attempt. */
  pressedBy?: Author;
  stoppedBy(): Author | undefined;
  /** Sentences to show under the answer. */
  notices: readonly string[];
}

export interface RunningTurn {
  readonly kind: "answer";
  readonly id: string;
  readonly record: TurnRecord;
  /** Interrupts the attempt if the event changes or stops this turn. Returns "refused" for another person's Stop. */
  notice(event: InboundEvent): "refused" | undefined;
  missStore(): void;
  tell(notice: string): void;
  /** Makes the next attempt end at once and say that the bot gave up. */
  giveUp(): void;
  /**
   * Applies the events that have arrived, and returns what the next attempt needs. That attempt answers only the
   * questions that still exist.
   */
  begin(): Beginning;
  /** True if another attempt must follow one with this result. */
  mustGoOn(result: AttemptResult): boolean;
  /** The changes and stops that the turn has applied. */
  taken(): readonly InboundEvent[];
}

export function createRunningTurn(
  record: TurnRecord,
  known: readonly MessageEvent[],
  { mustAsk = false, pressedBy }: Partial<Pick<Beginning, "mustAsk" | "pressedBy">> = {},
): RunningTurn {
  const taken: InboundEvent[] = [];
  const notices: string[] = [];
  /** The text and files of each message, to recognize edits that change nothing. */
  const bodies = new Map(known.map((message) => [message.messageId, bodyOf(message)]));
  let messages = [...known];
  let pending: Array<EditedEvent | DeletedEvent> = [];
  let stoppedBy: Author | undefined;
  let isGivenUp = false;
  let areStored = true;
  let controller = new AbortController();

  function stop(event: ActionEvent | CommandEvent): "refused" | undefined {
    if (!canManage(event, record)) return "refused";
    stoppedBy = event.author;
    taken.push(event);
    abortWith(controller, "stopped");
    return undefined;
  }

  function change(event: EditedEvent | DeletedEvent): void {
    if (!record.messageIds.includes(event.messageId)) return;
    if (event.kind === "edited") {
      // Platforms also report an edit when they add a link preview.
      if (bodies.get(event.messageId) === bodyOf(event)) return;
      bodies.set(event.messageId, bodyOf(event));
    }
    pending.push(event);
    abortWith(controller, "superseded");
  }

  return {
    kind: "answer",
    id: record.id,
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
      if (stoppedBy !== undefined) abortWith(controller, "stopped");
      // If the whole answer is known, the next attempt only has to show it.
      if (isGivenUp && record.isShownWhole !== true) abortWith(controller, "given-up");
      return { controller, messages, areStored, changes, mustAsk, pressedBy, notices, stoppedBy: () => stoppedBy };
    },
    mustGoOn(result) {
      if (result === "superseded") return true;
      // After a Stop, edits do not restart the turn. But if people delete all its questions, it goes on to remove the
      // answer.
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
 * How an attempt ended. `superseded`: people changed the questions, so the answer must restart. `forgotten`: the asker
 * is being erased, so nothing was stored and the caller must remove all messages of the answer.
 */
export type AttemptResult = "ended" | "superseded" | "forgotten";

const MAX_WAITING = 1_000;

type Running = RunningTurn | RunningPictures;

/** The turns that run in this process, and the picture turns that wait in it. */
export interface RunningTurns {
  /**
   * Runs the work of a turn. Registers the turn before the work first awaits, so that the turn misses no interruption.
   */
  whileRunning<T>(turn: Running, work: () => Promise<T>): Promise<T>;
  /**
   * Registers a picture turn that waits. If another process runs it, this process is not told, so the oldest waiting
   * turns are dropped when there are too many.
   */
  wait(turn: RunningPictures): void;
  findWaiting(id: string): RunningPictures | undefined;
  find(id: string): Running | undefined;
  /** Passes an event to the turns in this process. Returns a refusal for another person's Stop. */
  interrupt(event: InboundEvent): string | undefined;
  isAnswering(conversationId: string): boolean;
  /** Finds the conversation of a running turn, by one of the turn's messages or questions. */
  conversationOf(messageId: string): string | undefined;
}

export function createRunningTurns(): RunningTurns {
  const running = new Set<Running>();
  const waiting = new BoundedMap<string, RunningPictures>(MAX_WAITING);

  return {
    async whileRunning(turn, work) {
      if (waiting.get(turn.id) === turn) waiting.delete(turn.id);
      running.add(turn);
      try {
        return await work();
      } finally {
        running.delete(turn);
      }
    },
    wait: (turn) => void waiting.set(turn.id, turn),
    findWaiting: (id) => waiting.get(id),
    find: (id) => running.values().find((turn) => turn.id === id),
    interrupt(event) {
      const answers = [...running, ...waiting.values()].map((turn) => turn.notice(event));
      return answers.includes("refused") ? NOT_YOURS : undefined;
    },
    isAnswering: (conversationId) =>
      running.values().some(({ kind, record }) => kind === "answer" && record?.conversationId === conversationId),
    conversationOf(messageId) {
      const isOf = ({ record }: Running) =>
        record?.posted.includes(messageId) === true || record?.messageIds.includes(messageId) === true;
      return running.values().find(isOf)?.record?.conversationId;
    },
  };
}

export interface RunningPictures {
  readonly kind: "pictures";
  readonly id: string;
  /** The turn's record. Undefined until the record has been read. */
  readonly record: PictureTurn | undefined;
  /** Aborts with `stopped` or `given-up`. Pictures that are finished stay. */
  readonly stop: AbortSignal;
  /** Stops the turn if the event is a press on its Stop button. Returns "refused" for another person's Stop. */
  notice(event: InboundEvent): "refused" | undefined;
  /** Sets the record, and applies button presses that arrived before. */
  open(record: PictureTurn): void;
  /** Says whether a retry is running. During a retry, another press of Retry counts as part of it. */
  retries(isRetrying: boolean): void;
  giveUp(): void;
  taken(): readonly InboundEvent[];
}

export function createRunningPictures(id: string): RunningPictures {
  const controller = new AbortController();
  const taken: InboundEvent[] = [];
  let record: PictureTurn | undefined;
  let early: InboundEvent[] = [];
  let isRetrying = false;

  function notice(event: InboundEvent): "refused" | undefined {
    if (event.kind !== "action" || readPictureId(event.turnId)?.turnId !== id) return undefined;
    if (event.action === "retry" && isRetrying) taken.push(event);
    if (event.action !== "stop") return undefined;
    if (record === undefined) {
      early.push(event);
      return undefined;
    }
    if (!canManage(event, record)) return "refused";
    taken.push(event);
    abortWith(controller, "stopped");
    return undefined;
  }

  return {
    kind: "pictures",
    id,
    get record() {
      return record;
    },
    stop: controller.signal,
    notice,
    open(read) {
      record = read;
      const waiting = early;
      early = [];
      for (const event of waiting) notice(event);
    },
    retries: (is) => void (isRetrying = is),
    giveUp: () => abortWith(controller, "given-up"),
    taken: () => taken,
  };
}
