import type { HistoryEntry } from "../../src/history/record.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import type { Life } from "./cluster.ts";
import type { Board } from "./dashboard.ts";
import type { Break, Question, Shown } from "./place.ts";
import type { FaultKind, Plan } from "./plan.ts";
import type { Call, QuestionDelivery } from "./stage.ts";
import type { UpstreamRequest } from "./upstream.ts";

/** An event from outside, or in the life of a process. */
export interface Note {
  /** Unix milliseconds, like all times in a record. */
  atMs: number;
  what: string;
}

/** A fault that really happened. */
export interface Disturbance {
  kind: FaultKind;
  /** Index of the affected process; undefined if the fault affects all processes or the platform. */
  slot: number | undefined;
  /** Name of the platform's fault, for the kind `platform`. */
  trouble?: string;
  fromMs: number;
  /** When the fault ended, or when the killed process was ready again. */
  toMs: number;
}

export interface AskedQuestion extends Question {
  place: number;
  askedAtMs: number;
  /** True for a run of a schedule, because no person asked at that moment. */
  isScheduled?: true;
}

/** Everything that can be seen of a run from outside, and the stores at its end. The judge uses nothing else. */
export interface Record {
  plan: Plan;
  notes: readonly Note[];
  lives: readonly Life[];
  disturbances: readonly Disturbance[];
  questions: readonly AskedQuestion[];
  /** The bot's replies that acknowledge image commands, by the image's name. Contains only acknowledged commands. */
  replies: ReadonlyMap<string, string>;
  /** Ids of deleted questions, and of questions whose answers people restarted. */
  removed: ReadonlySet<string>;
  restarted: ReadonlySet<string>;
  /** Ids of the bot's messages that people deleted. */
  deletedAnswers: ReadonlySet<string>;
  /** Ids of questions in places that the bot lost or could not write to for a while. */
  cutOff: ReadonlySet<string>;
  deliveryOf(question: Question): QuestionDelivery;
  /** Returns the requests to the upstream about a question, by its name. */
  requestsFor(name: string): readonly UpstreamRequest[];
  /** The bot's messages, except in places that the bot lost. */
  shown: readonly Shown[];
  calls: readonly Call[];
  breaks: readonly Break[];
  turns: readonly TurnRecord[];
  histories: ReadonlyMap<string, readonly HistoryEntry[]>;
  /** Number of requests to the upstream as the bot counted them, including those of dead processes. */
  counted: number;
  board: Board;
  /** Names of the questions for which a tool acted, one entry per action. */
  acts: readonly string[];
  /** The work that was still open at the end: the number of events, and descriptions of one-off schedules. */
  open: { events: number; runs: readonly string[] };
  secrets: readonly string[];
}
