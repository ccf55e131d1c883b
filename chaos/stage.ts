import type { Break, Place, Question, Shown } from "../test/support/fault-loop/world.ts";

/** A call of a process to the platform, as the platform has recorded it. */
export interface Call {
  atMs: number;
  endedAtMs: number | undefined;
  /** The address at which the caller reached the platform: one for each life of each process. */
  host: string;
  /** The API method, and the key under which the platform counts its limit. */
  method: string;
  budget: string;
  /** The message that it writes, as the port names it; undefined for a post. */
  messageId: string | undefined;
  status: number;
  /** The wait that was told. */
  retryAfterMs: number | undefined;
  /** The text that it writes, for the report. */
  words: string;
}

/** The delivery of a question to the service. */
export interface Told {
  /** Undefined where the platform does not say. */
  toldAtMs: number | undefined;
  /** When all that tells of it had been acknowledged. */
  acknowledgedAtMs: number | undefined;
  /** Ids of the sessions that were told, each in the order in which things were said; undefined where there are none. */
  sessionIds?: ReadonlySet<string>;
  /**
   * Nobody acknowledged it, and the platform has stopped delivering it; or nobody was told of it, since the platform had
   * ended the last session itself, in a conversation that it names nowhere else.
   */
  isGivenUp: boolean;
}

/** A simulated platform with all the places of a plan. Everything that was done there is recorded. */
export interface Stage {
  /** The simulator's own origin. */
  readonly origin: string;
  /** Environment variables of a process that reaches the platform at this address. */
  env(origin: string): Record<string, string>;
  /** To be called with the address of the first process that is ready. */
  install(serviceUrl: string): Promise<void>;
  readonly places: readonly Place[];
  readonly troubles: readonly string[];
  /** Asks for a picture by a command. The returned function is true once somebody has acknowledged that. */
  draw(place: number, text: string): () => boolean;
  /** Everything of the bot in all places, oldest first. */
  shown(): Shown[];
  calls(): Call[];
  breaks(): Break[];
  told(question: Question): Told;
  /** True when no delivery waits for its acknowledgement or for its next attempt. */
  isSettled(): boolean;
  /** Tokens and keys that no log and no message may contain. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}
