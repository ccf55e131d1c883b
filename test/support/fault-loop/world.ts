import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../../../src/app/engine.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Stores } from "../../../src/store/keyv.ts";
import type { Random } from "../pacing/random.ts";

/** The payload of a button that belongs to whatever turn is running there. */
export const ANY_TURN = "*";

/** A message of the bot as people see it, without the steps above its text. */
export interface Shown {
  /** As the port names it. */
  id: string;
  text: string;
  /** The texts that it has shown until now, oldest first, and since when: Unix milliseconds. */
  states: string[];
  statesAtMs: number[];
  isGrowing: boolean;
  /** `payload` names the turn. */
  buttons: Array<{ label: string; payload: string }>;
}

/** A question as it stands on the platform. */
export interface Question {
  name: string;
  /** As the port names it. */
  id: string;
  /** Which of the people asked it. */
  person: number;
  /** The bot was there, and could see it, when it was asked. */
  isTold: boolean;
}

const POLL_MS = 10;

/** Looks again and again. Resolves to what was found, or to undefined when the time is over. */
export async function lookFor<T>(find: () => T | undefined | false, withinMs: number): Promise<T | undefined> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) return undefined;
    await sleep(POLL_MS);
  }
}

export interface Break {
  kind: string;
  sentence: string;
  /** Unix milliseconds. */
  atMs: number;
  /** The message it was about, as the port names it, where it was one. */
  messageId?: string;
  /** That message only says why there is no answer. */
  isNotice?: boolean;
}

export interface AdapterParts {
  /** Where the platform is reached; the simulator's own address must not be used. */
  origin: string;
  engine: Engine;
  stores: Pick<Stores, "open" | "inTurn">;
}

/** Somewhere on a simulated platform where two people and the bot are. */
export interface Place {
  ask(name: string, person: number): Question;
  edit(question: Question, text: string): void;
  remove(question: Question): void;
  /** The bot's messages that stand there, oldest first. */
  shown(): Shown[];
  removeShown(id: string): void;
  /** Presses a button. Throws when it is not there any more. */
  press(id: string, label: string, person: number): void;
  /** Lets it go wrong. What it gives back sets it right, where that does not happen by itself. */
  inflict(trouble: string, random: Random): (() => void) | undefined;
}

/** A simulated platform with one place in it, and all that happens there. */
export interface World extends Place {
  /** Of the simulator. */
  readonly origin: string;
  startAdapter(parts: AdapterParts): Adapter;
  /** True while somebody is there whom the platform could tell what is said. */
  hasListener(): boolean;
  /** Asks in another place, where nothing goes wrong. */
  askAside(name: string): Question;
  /** The faults that may happen here, by name. */
  readonly troubles: readonly string[];
  /** Those of them after which an answer cannot be written to its end. */
  readonly disturbing: ReadonlySet<string>;
  /** The platform's rules that the bot broke. */
  breaks(): Break[];
  close(): Promise<void>;
}

/** Brings something about that sets itself right. */
export function passing<T>(act: (victim: T) => void): (victim: T) => undefined {
  return (victim) => {
    act(victim);
    return undefined;
  };
}
