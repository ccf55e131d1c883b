/** The limits of all waits and sizes. Tests set shorter limits. */
export type GatewayLimits = typeof DEFAULT_LIMITS;

export const DEFAULT_LIMITS = {
  connectMs: 10_000,
  /** The longest silence before the answer starts with text, a tool call or reasoning. Comments do not count. */
  firstTokenMs: 60_000,
  /** The longest time before the first piece of a streamed answer, including all attempts and waits between them. */
  firstTokenTotalMs: 90_000,
  /** The longest silence within an answer. */
  idleMs: 30_000,
  /** The longest wait for usage and `[DONE]` after the answer's finish reason. */
  tailMs: 2_000,
  /** The longest call, including retries and their waits. */
  totalMs: 600_000,
  /** The longest wait for the body of an error response. */
  errorBodyMs: 5_000,
  /** The longest event of a stream: large enough for an image in base64. */
  maxEventBytes: 29_360_128,
  /** The longest answer, including tool arguments. The same limit applies separately to thoughts. */
  maxAnswerChars: 262_144,
  /** The largest JSON body: large enough for an image in base64. */
  maxBodyBytes: 29_360_128,
  /** The largest decoded image. */
  maxImageBytes: 20_971_520,
  /** The number of attempts per request, including the first one. */
  attempts: 3,
  backoffMinMs: 500,
  backoffMaxMs: 8_000,
  /** The maximum total of all waits that the gateway requests with `Retry-After` during one call. */
  maxRetryWaitMs: 20_000,
  /** A paused model is tested this often, even if the gateway requested a longer pause, which can be a mistake. */
  probeMs: 30_000,
  /** The longest pause that a gateway can request. */
  maxPauseMs: 3_600_000,
  /** A model is paused after this many failed attempts in a row. */
  breakerFailures: 5,
  /** The length of the first pause. Each further failure doubles it, up to `breakerMaxMs`. */
  breakerMs: 2_000,
  breakerMaxMs: 10_000,
};
