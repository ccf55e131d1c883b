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
  /** The questions after `changes`. Empty if only the store has them. */
  messages: MessageEvent[];
  /** False if the history lacks some of the questions. */
  areStored: boolean;
  /** Changes to the questions since the previous attempt. */
  changes: Array<EditedEvent | DeletedEvent>;
  /** If true, the first request ignores the circuit breaker. */
  mustAsk: boolean;
  /** The person who pressed Retry. */
  pressedBy?: Author;
  stoppedBy(): Author | undefined;
  /** Sentences for the end of the answer. */
  notices: readonly string[];
}

export interface RunningTurn {
  readonly kind: "answer";
  readonly id: string;
  readonly record: TurnRecord;
  /** Interrupts the attempt if the event changes or stops this turn. Refuses another person's Stop. */
  notice(event: InboundEvent): "refused" | undefined;
  missStore(): void;
  tell(notice: string): void;
  /** Makes the next attempt end at once and say so. */
  giveUp(): void;
  /** Applies the events that have arrived, and starts an attempt with the questions that still exist. */
  begin(): Beginning;
  /** True if another attempt must follow. */
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
      // Platforms also report an edit when they add a preview.
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
      // A complete text only has to be shown.
      if (isGivenUp && record.isShownWhole !== true) abortWith(controller, "given-up");
      return { controller, messages, areStored, changes, mustAsk, pressedBy, notices, stoppedBy: () => stoppedBy };
    },
    mustGoOn(result) {
      if (result === "superseded") return true;
      // A stopped turn restarts only on Retry, but is removed with its questions.
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
 * `superseded`: people changed the questions, so the answer must restart. `forgotten`: the asker is being erased, so
 * nothing is stored and the caller must remove all of the answer's messages.
 */
export type AttemptResult = "ended" | "superseded" | "forgotten";

const MAX_WAITING = 1_000;

type Running = RunningTurn | RunningPictures;

/** The turns that run in this process, and the picture turns that wait here. */
export interface RunningTurns {
  /** Registers the turn before the work first awaits, so that the turn misses no interruption. */
  whileRunning<T>(turn: Running, work: () => Promise<T>): Promise<T>;
  /** Another process can run a waiting turn without this process noticing, so the oldest are dropped. */
  wait(turn: RunningPictures): void;
  findWaiting(id: string): RunningPictures | undefined;
  find(id: string): Running | undefined;
  /** Passes an event to the turns that it concerns. Returns a refusal for another person's Stop. */
  interrupt(event: InboundEvent): string | undefined;
  isAnswering(conversationId: string): boolean;
  /** Finds a running turn's conversation by a message of the turn, or by one of its questions. */
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

/** A picture turn that runs or waits. */
export interface RunningPictures {
  readonly kind: "pictures";
  readonly id: string;
  /** Undefined until the record is read. */
  readonly record: PictureTurn | undefined;
  /** Aborts with `stopped` or `given-up`. Finished pictures stay. */
  readonly stop: AbortSignal;
  /** Stops the turn on its Stop button. Refuses another person's Stop. */
  notice(event: InboundEvent): "refused" | undefined;
  /** Sets the record and applies the button presses that arrived before. */
  open(record: PictureTurn): void;
  /** While this is true, another press of Retry counts as part of this turn. */
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
