import type { Break, Place, Question, Shown } from "./place.ts";
import type { Plan } from "./plan.ts";

/** The part of a plan that a platform needs. */
export type StagePlan = Pick<Plan, "places" | "streams" | "threads" | "faults" | "isAlone">;

/** A process's call to the platform, as the platform recorded it. */
export interface Call {
  atMs: number;
  endedAtMs: number | undefined;
  /** The host at which the caller reached the platform. Each life of a process uses a different host. */
  host: string;
  /** The API method, and the key under which the platform counts the call for its rate limit. */
  method: string;
  budget: string;
  /** The id of the message that the call writes, in the bot's format. Undefined for a post. */
  messageId: string | undefined;
  status: number;
  /** The wait that the platform asked for. */
  retryAfterMs: number | undefined;
  /** The text that the call writes. The report shows it. */
  words: string;
}

/** The delivery of a question to the service. */
export interface QuestionDelivery {
  /** Undefined if the platform does not report the time. */
  deliveredAtMs: number | undefined;
  /** When the bot had acknowledged all events about the question. */
  acknowledgedAtMs: number | undefined;
  /**
   * Ids of the sessions that received the question. Each session receives messages in order. Undefined if the platform
   * has no sessions.
   */
  sessionIds?: ReadonlySet<string>;
  /**
   * True if the platform stopped delivering the question although no one acknowledged it. Also true if no session
   * received it because Discord had ended the last session. Its conversation is then in no list.
   */
  isGivenUp: boolean;
}

/** A simulated platform with all places in a plan. It records everything that happens there. */
export interface Stage {
  /** The simulator's own origin. */
  readonly origin: string;
  /** Environment variables of a process that reaches the platform at this address. */
  env(origin: string): Record<string, string>;
  /** Call this with the URL of the first process that is ready. */
  install(serviceUrl: string): Promise<void>;
  readonly places: readonly Place[];
  readonly troubles: readonly string[];
  /** Faults that remove the bot from a place, or take away its right to write there. */
  readonly disturbing: ReadonlySet<string>;
  /**
   * Requests an image with a command. The returned function returns the words in the acknowledgement, "" if it has none,
   * and undefined until the bot acknowledges the command.
   */
  draw(place: number, text: string): () => string | undefined;
  /** All messages of the bot in all places, oldest first. */
  shown(): Shown[];
  calls(): Call[];
  breaks(): Break[];
  deliveryOf(question: Question): QuestionDelivery;
  /** True if no delivery is waiting for its acknowledgement or for a retry. */
  isSettled(): boolean;
  /** Tokens and keys that must not appear in logs or messages. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}
