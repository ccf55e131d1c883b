import type { Schedule } from "../../src/schedules/schedule.ts";
import type { Random } from "../pacing/random.ts";

/** The payload of a button that applies to every running turn in its thread. */
export const ANY_TURN = "*";

/** A bot's message as people see it, without the steps above its text. */
export interface Shown {
  /** Its id in the bot's format. */
  id: string;
  text: string;
  /** All texts that it has shown, oldest first, with the Unix milliseconds at which each one appeared. */
  states: string[];
  statesAtMs: number[];
  isGrowing: boolean;
  /** `payload` identifies the turn. */
  buttons: Array<{ label: string; payload: string }>;
}

/** A question that a person asked on the platform. */
export interface Question {
  name: string;
  /** Its id in the bot's format. */
  id: string;
  /** The index of the person who asked it. */
  person: number;
}

export interface Break {
  kind: string;
  sentence: string;
  /** Unix milliseconds. */
  atMs: number;
  /** The id of the affected message in the bot's format, if there is one. */
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
  /** Starts a fault. Returns a function that ends the fault, or undefined if it ends on its own. */
  inflict(trouble: string, random: Random): (() => void) | undefined;
}

/** Wraps a fault that ends on its own. */
export function passing<T>(act: (victim: T) => void): (victim: T) => undefined {
  return (victim) => {
    act(victim);
    return undefined;
  };
}
