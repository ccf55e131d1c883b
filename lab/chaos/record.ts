import type { HistoryEntry } from "../../src/history/record.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import type { Life } from "./cluster.ts";
import type { Board } from "./dashboard.ts";
import type { Break, Question, Shown } from "./place.ts";
import type { FaultKind, Plan } from "./plan.ts";
import type { Call, QuestionDelivery } from "./stage.ts";
import type { UpstreamRequest } from "./upstream.ts";

/** An event from outside, or an event in the life of a process. */
export interface Note {
  /** Unix milliseconds, like all times in a record. */
  atMs: number;
  what: string;
}

/** A fault that really happened. */
export interface Disturbance {
  kind: FaultKind;
  /** The process. Undefined if the fault affects all processes or the platform. */
  slot: number | undefined;
  /** The name of the platform's fault, if the kind is `platform`. */
  trouble?: string;
  fromMs: number;
  /** When the process was ready again, if the fault ended it. */
  toMs: number;
}

export interface AskedQuestion extends Question {
  place: number;
  askedAtMs: number;
  /** The run of a schedule: no person asked it at that moment. */
  isScheduled?: true;
}

/** Everything that is visible of a run from outside, and in the stores at its end. The judge uses nothing else. */
export interface Record {
  plan: Plan;
  notes: readonly Note[];
  lives: readonly Life[];
  disturbances: readonly Disturbance[];
  questions: readonly AskedQuestion[];
  /** By the name of the image, the words in the acknowledgement of its command. Has only acknowledged commands. */
  replies: ReadonlyMap<string, string>;
  /** Ids of questions that people deleted, and of questions whose answers people restarted. */
  removed: ReadonlySet<string>;
  restarted: ReadonlySet<string>;
  /** Ids of the bot's messages that people deleted. */
  deletedAnswers: ReadonlySet<string>;
  /** Ids of questions in places that the bot lost, or that it could not write to for a while. */
  cutOff: ReadonlySet<string>;
  deliveryOf(question: Question): QuestionDelivery;
  /** The requests to the upstream, by the name of their question. */
  requestsFor(name: string): readonly UpstreamRequest[];
  /** The bot's messages, except those in places that the bot lost. */
  shown: readonly Shown[];
  calls: readonly Call[];
  breaks: readonly Break[];
  turns: readonly TurnRecord[];
  /** The histories by conversation. */
  histories: ReadonlyMap<string, readonly HistoryEntry[]>;
  /** The number of requests to the upstream, as the bot counted them. Includes the requests of dead processes. */
  counted: number;
  /** The dashboard's numbers at the end. */
  board: Board;
  /** Names of questions. A name appears once for each time that a tool acted for its answer. */
  acts: readonly string[];
  /** What was still open at the end: the number of events, and single runs of schedules, described. */
  open: { events: number; runs: readonly string[] };
  secrets: readonly string[];
}
