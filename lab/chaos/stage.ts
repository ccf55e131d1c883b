import type { Break, Place, Question, Shown } from "./place.ts";
import type { Plan } from "./plan.ts";

export type StagePlan = Pick<Plan, "places" | "streams" | "threads" | "faults" | "isAlone">;

/** A call to the platform, as the platform recorded it. */
export interface Call {
  atMs: number;
  endedAtMs: number | undefined;
  /** The host under which the caller reached the platform. Each life of a process uses another host. */
  host: string;
  /** The API method, and the key of the rate limit that counts the call. */
  method: string;
  budget: string;
  /** The id of the message that the call edits, in the bot's format; undefined for a post. */
  messageId: string | undefined;
  status: number;
  /** The wait that the platform requested. */
  retryAfterMs: number | undefined;
  /** The text in the call, for the report. */
  words: string;
}

export interface QuestionDelivery {
  /** Undefined if the platform does not report the time. */
  deliveredAtMs: number | undefined;
  /** When the bot had acknowledged all events about the question. */
  acknowledgedAtMs: number | undefined;
  /**
   * Ids of the sessions that received the question; each receives messages in order. Undefined if the platform has no
   * sessions.
   */
  sessionIds?: ReadonlySet<string>;
  /**
   * True if the platform stopped delivering the question without an acknowledgement. Also true if Discord had ended the
   * last session, so that no session received the question and the bot cannot find its conversation.
   */
  isGivenUp: boolean;
}

/** A simulated platform with all places of a plan, which records everything that happens there. */
export interface Stage {
  readonly origin: string;
  /** Environment variables for a process that reaches the platform at this origin. */
  env(origin: string): Record<string, string>;
  /** Must be called with the URL of the first process that is ready. */
  install(serviceUrl: string): Promise<void>;
  readonly places: readonly Place[];
  readonly troubles: readonly string[];
  /** Faults that remove the bot from a place or stop it from writing there. */
  readonly disturbing: ReadonlySet<string>;
  /**
   * Requests an image with a command. The returned function returns the acknowledgement's text, or undefined until
   * there is one.
   */
  draw(place: number, text: string): () => string | undefined;
  /** All messages of the bot, oldest first. */
  shown(): Shown[];
  calls(): Call[];
  breaks(): Break[];
  deliveryOf(question: Question): QuestionDelivery;
  /** True if no delivery waits for its acknowledgement or for a retry. */
  isSettled(): boolean;
  /** Tokens and keys that must not appear in logs or messages. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}
