import type { RunCommand } from "../commands/command.ts";
import type { Imagine } from "../imagine/imagine.ts";
import type { Accept } from "../port/events.ts";
import type { Planner } from "../schedules/planner.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { AfterTheEnd } from "../turn/after-the-end.ts";
import type { Answers } from "../turn/answers.ts";
import type { TurnServices } from "../turn/records.ts";
import type { RunningTurns } from "../turn/running.ts";
import type { Explain } from "../turn/trace.ts";
import type { WaitingMarks } from "../turn/waiting-marks.ts";
import type { Gate } from "./gate.ts";

export interface BotDeps extends TurnServices {
  turns: RunningTurns;
  answers: Answers;
  afterTheEnd: AfterTheEnd;
  /** If true, an answer is deleted together with its question. Otherwise a button offers to delete the answer. */
  removesWithQuestion: boolean;
  explain: Explain;
  waiting: WaitingMarks;
  imagine: Imagine;
  schedules: Schedules;
  planner: Planner;
  commands: ReadonlyMap<string, RunCommand>;
}

/** Adds the parts that the bot creates itself. */
export interface BotParts extends BotDeps {
  gate: Gate;
  /** Accepts events that the bot creates for a person. */
  accept: Accept;
}
