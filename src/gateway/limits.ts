/** Limits for all waits and sizes. Tests can set shorter ones. */
export type GatewayLimits = typeof DEFAULT_LIMITS;

export const DEFAULT_LIMITS = {
  connectMs: 10_000,
  /**
   * Longest silence until the first piece of the answer: text, a tool call or reasoning. Comments and empty deltas do
   * not count.
   */
  firstTokenMs: 60_000,
  /** The same for a streamed answer with all attempts and the waits between them. */
  firstTokenTotalMs: 90_000,
  /** Longest silence during an answer. */
  idleMs: 30_000,
  /** Longest wait for usage and `[DONE]` after the answer's finish reason. */
  tailMs: 2_000,
  /** Longest call, including retries and their waits. */
  totalMs: 600_000,
  /** Longest wait for the body of an error response. */
  errorBodyMs: 5_000,
  /** Large enough for a picture in base64. */
  maxEventBytes: 29_360_128,
  /** Longest answer, including tool arguments. The same limit applies separately to thoughts. */
  maxAnswerChars: 262_144,
  /** Largest JSON body. A response can contain a picture. */
  maxBodyBytes: 29_360_128,
  /** Largest decoded picture. */
  maxImageBytes: 20_971_520,
  /** Maximum number of calls, including the first one. */
  attempts: 3,
  backoffMinMs: 500,
  backoffMaxMs: 8_000,
  /** Longest total wait that the gateway requests with `Retry-After`, in one call. */
  maxRetryWaitMs: 20_000,
  /**
   * A paused model is tested this often even if it asked for a longer pause, in case the requested pause is a mistake.
   */
  probeMs: 30_000,
  /** Limit for a pause that a gateway requests. */
  maxPauseMs: 3_600_000,
  /** A model is paused after this many failed attempts in a row. */
  breakerFailures: 5,
  /**
   * Length of the first pause. Each further failure doubles it, up to `breakerMaxMs`. After the pause, one call tests
   * the model.
   */
  breakerMs: 2_000,
  breakerMaxMs: 10_000,
};
