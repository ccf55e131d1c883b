/** Bounds of every wait and every size. All of them can be set, so that a test need not wait. */
export interface GatewayLimits {
  connectMs: number;
  /** Longest silence until the first piece of the answer. Text, tool calls and reasoning end it: comments and empty deltas do not. */
  firstTokenMs: number;
  /** The same for all attempts at an answer that comes piece by piece and the waits between them, together. */
  firstTokenTotalMs: number;
  /** Longest silence within an answer. */
  idleMs: number;
  /** Longest wait for usage and `[DONE]` once the answer has said that it is finished. */
  tailMs: number;
  /** Longest call, retries and their waits included. */
  totalMs: number;
  /** Longest wait for the body of an error. */
  errorBodyMs: number;
  maxEventBytes: number;
  /** Longest answer, arguments of tool calls included; and as much may be thought before it. */
  maxAnswerChars: number;
  /** Largest JSON body that is not a picture. */
  maxBodyBytes: number;
  /** Largest picture, decoded. */
  maxImageBytes: number;
  /** Calls made at most, the first one included. */
  attempts: number;
  backoffMinMs: number;
  backoffMaxMs: number;
  /** Longest wait for the gateway's own `Retry-After`, summed over one call. */
  maxRetryWaitMs: number;
  /** Until a call is made in spite of a longer `Retry-After`, and then between two of them: one wrong or spiteful answer must not silence a model for long. */
  probeMs: number;
  /** Failed attempts in a row after which a model is left alone, unless one that was made before it succeeds. */
  breakerFailures: number;
  /** Length of the first pause. Each further failure doubles it, up to `breakerMaxMs`. */
  breakerMs: number;
  breakerMaxMs: number;
}

export const DEFAULT_LIMITS: Readonly<GatewayLimits> = Object.freeze({
  connectMs: 10_000,
  firstTokenMs: 60_000,
  firstTokenTotalMs: 90_000,
  idleMs: 30_000,
  tailMs: 2_000,
  totalMs: 600_000,
  errorBodyMs: 5_000,
  maxEventBytes: 1_048_576,
  maxAnswerChars: 262_144,
  maxBodyBytes: 4_194_304,
  maxImageBytes: 20_971_520,
  attempts: 3,
  backoffMinMs: 500,
  backoffMaxMs: 8_000,
  maxRetryWaitMs: 20_000,
  probeMs: 30_000,
  breakerFailures: 5,
  breakerMs: 5_000,
  breakerMaxMs: 60_000,
});
