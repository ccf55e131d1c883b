import type { Break, Place, Question, Shown } from "../test/support/fault-loop/world.ts";

/** A call of a process to the platform, as the platform has recorded it. */
export interface Call {
  atMs: number;
  endedAtMs: number | undefined;
  /** The address at which the caller reached the platform: one for each life of each process. */
  host: string;
  /** What is called, and what its limits are counted for. */
  method: string;
  budget: string;
  /** The message that it writes, as the port names it; undefined for a post. */
  messageId: string | undefined;
  status: number;
  /** The wait that was told. */
  retryAfterMs: number | undefined;
  /** What it brings, for people. */
  words: string;
}

/** How a question was told to the service. */
export interface Told {
  /** Undefined where the platform does not say. */
  toldAtMs: number | undefined;
  acknowledgedAtMs: number | undefined;
  /** Nobody has acknowledged it, and it is told no more. */
  isGivenUp: boolean;
}

/** A simulated platform with all the places of a plan. Everything that was done there is recorded. */
export interface Stage {
  /** Of the simulator. */
  readonly origin: string;
  /** What a process needs that reaches the platform at this address. */
  env(origin: string): Record<string, string>;
  /** To be called with the address of the first process that is ready. */
  install(serviceUrl: string): Promise<void>;
  readonly places: readonly Place[];
  /** Beginnings of the ids of all conversations there. */
  readonly prefixes: readonly string[];
  readonly troubles: readonly string[];
  /** Asks for a picture by a command. What it gives back says whether anybody has acknowledged that. */
  draw(place: number, text: string): () => boolean;
  /** Everything of the bot in all places, oldest first. */
  shown(): Shown[];
  calls(): Call[];
  breaks(): Break[];
  told(question: Question): Told;
  /** Nothing that was told waits for its acknowledgement, or to be told again. */
  isSettled(): boolean;
  /** What no log and no message may have. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}
