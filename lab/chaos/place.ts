import type { Schedule } from "../../src/schedules/schedule.ts";
import type { Random } from "../pacing/random.ts";

/** The payload of a button for every running turn in its thread. */
export const ANY_TURN = "*";

/** A message of the bot as people see it, but without the steps above the text. */
export interface Shown {
  id: string;
  text: string;
  /** All texts that the message has shown, oldest first, and when each appeared in Unix milliseconds. */
  states: string[];
  statesAtMs: number[];
  isGrowing: boolean;
  /** The buttons; `payload` identifies the turn. */
  buttons: Array<{ label: string; payload: string }>;
}

export interface Question {
  name: string;
  /** The id in the bot's format. */
  id: string;
  /** Index of the asker among the place's people. */
  person: number;
}

export interface Break {
  kind: string;
  sentence: string;
  /** Unix milliseconds. */
  atMs: number;
  /** Id of the affected message in the bot's format. */
  messageId?: string;
}

/** A place on a simulated platform where two people and the bot write. */
export interface Place {
  /** Where the first person's schedules post. */
  readonly lasting: Pick<Schedule, "author" | "reply" | "conversationId">;
  ask(name: string, person: number): Question;
  edit(question: Question, text: string): void;
  remove(question: Question): void;
  /** The bot's messages that still exist, oldest first. */
  shown(): Shown[];
  removeShown(id: string): void;
  /** Presses a button. Throws if the button no longer exists. */
  press(id: string, label: string, person: number): void;
  /** Starts a fault. The returned function ends it. Undefined if the fault ends on its own. */
  inflict(trouble: string, random: Random): (() => void) | undefined;
}

/** Wraps a fault that needs no call to end it. */
export function passing<T>(act: (victim: T) => void): (victim: T) => undefined {
  return (victim) => {
    act(victim);
    return undefined;
  };
}
