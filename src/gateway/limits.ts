/** Bounds of every wait and every size. All of them can be set, so that a test need not wait. */
export type GatewayLimits = typeof DEFAULT_LIMITS;

export const DEFAULT_LIMITS = {
  connectMs: 10_000,
  /** Longest silence until the first piece of the answer. Text, tool calls and reasoning end it: comments and empty deltas do not. */
  firstTokenMs: 60_000,
  /** The same for an answer that comes piece by piece: all attempts and the waits between them together. */
  firstTokenTotalMs: 90_000,
  /** Longest silence within an answer. */
  idleMs: 30_000,
  /** Longest wait for usage and `[DONE]` once the answer has said that it is finished. */
  tailMs: 2_000,
  /** Longest call, retries and their waits included. */
  totalMs: 600_000,
  /** Longest wait for the body of an error. */
  errorBodyMs: 5_000,
  /** Also holds a picture as base64. */
  maxEventBytes: 29_360_128,
  /** Longest answer, arguments of tool calls included; and as much may be thought before it. */
  maxAnswerChars: 262_144,
  /** Largest JSON body; that of an answer may hold a picture. */
  maxBodyBytes: 29_360_128,
  /** Largest picture, decoded. */
  maxImageBytes: 20_971_520,
  /** Calls made at most, the first one included. */
  attempts: 3,
  backoffMinMs: 500,
  backoffMaxMs: 8_000,
  /** Longest wait for the gateway's own `Retry-After`, summed over one call. */
  maxRetryWaitMs: 20_000,
  /** A paused model is tried this often, although it asked for a longer pause: a wrong answer must not silence it for long. */
  probeMs: 30_000,
  /** The longest pause that a gateway can ask for. */
  maxPauseMs: 3_600_000,
  /** Failed attempts in a row after which a model is paused. */
  breakerFailures: 5,
  /** Length of the first pause. Each further failure doubles it, up to `breakerMaxMs`. Then one call tries the model. */
  breakerMs: 2_000,
  breakerMaxMs: 10_000,
};
