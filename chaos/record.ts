import type { HistoryEntry } from "../src/history/record.ts";
import type { TurnRecord } from "../src/turn/record.ts";
import type { Asked } from "../test/support/fault-loop/upstream.ts";
import type { Break, Question, Shown } from "../test/support/fault-loop/world.ts";
import type { Life } from "./cluster.ts";
import type { Board } from "./dashboard.ts";
import type { FaultKind, Plan } from "./plan.ts";
import type { Call, Told } from "./stage.ts";

/** Something that happened from outside, or to a process. */
export interface Note {
  /** Unix milliseconds, as all times of a record. */
  atMs: number;
  what: string;
}

/** A fault as it happened. */
export interface Disturbance {
  kind: FaultKind;
  /** The process; undefined where all are concerned, or the platform. */
  slot: number | undefined;
  /** The platform's trouble, with the kind `platform`. */
  trouble?: string;
  fromMs: number;
  /** For a process that was ended, the time at which it was ready again. */
  toMs: number;
}

export interface SaidQuestion extends Question {
  place: number;
  saidAtMs: number;
}

/** Everything that was seen of a run, from outside and in the stores at its end. Whoever judges has nothing else. */
export interface Record {
  plan: Plan;
  notes: readonly Note[];
  lives: readonly Life[];
  disturbances: readonly Disturbance[];
  questions: readonly SaidQuestion[];
  /** Names of pictures that were asked for, where that was acknowledged. */
  drawn: readonly string[];
  /** Ids of questions that people took back, and of those whose answer people had begin anew. */
  removed: ReadonlySet<string>;
  begunAnew: ReadonlySet<string>;
  told(question: Question): Told;
  /** The requests to the upstream for the question of this name. */
  asked(name: string): readonly Asked[];
  shown: readonly Shown[];
  calls: readonly Call[];
  breaks: readonly Break[];
  turns: readonly TurnRecord[];
  /** By conversation. */
  histories: ReadonlyMap<string, readonly HistoryEntry[]>;
  /** Requests to the upstream: those that were counted, and those for which room is still reserved. */
  spent: { counted: number; held: number };
  /** The dashboard's numbers at the end. */
  board: Board;
  /** Names of questions for whose answer a tool acted, once for each time that it did. */
  acts: readonly string[];
  /** Events that were not done when nothing changed any more. */
  open: number;
  secrets: readonly string[];
}
