import { SinkError, type SinkErrorKind } from "../../../src/port/errors.ts";
import { ApiError } from "../api/error.ts";

/**
 * Discord's error codes whose meaning differs from the HTTP status.
 * https://docs.discord.com/developers/topics/opcodes-and-status-codes
 */
const CODES: ReadonlyArray<[SinkErrorKind, readonly number[]]> = [
  // The channel, server, message or interaction no longer exists.
  ["gone", [10003, 10004, 10008, 10015, 10062, 40060, 50027]],
  // Missing access or permissions, a user who accepts no messages, another author's message, or a closed thread.
  ["forbidden", [30046, 50001, 50005, 50007, 50013, 50083, 50278, 160002, 160005]],
  // The text itself is empty, too long or too large.
  ["rejected", [40005, 50006, 50035]],
  // Explicit content, text blocked by the server's AutoMod, or links that Discord considers harmful.
  ["filtered", [20009, 200000, 240000]],
  ["unavailable", [130000]],
];
const KINDS = new Map(CODES.flatMap(([kind, codes]) => codes.map((code) => [code, kind] as const)));

/** Converts a failed write to a `SinkError`. Returns a `SinkError` and the reason of an abort unchanged. */
export function toSinkError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof SinkError) return error;
  if (!(error instanceof ApiError) || error.status === 0) {
    const words = error instanceof ApiError ? error.network : error instanceof Error ? error.name : "unknown";
    return new SinkError("unavailable", `Discord cannot be reached (${words}).`);
  }
  const { logMessage, quote, retryAfterMs } = error;
  const kind = kindOf(error);
  const wait = kind === "rate-limited" ? { retryAfterMs: retryAfterMs ?? 1_000 } : {};
  return new SinkError(kind, logMessage, { quote, ...wait });
}

export async function guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    throw toSinkError(error, signal);
  }
}

function kindOf({ status, code, isForeign }: ApiError): SinkErrorKind {
  const known = KINDS.get(code);
  if (known !== undefined) return known;
  if (status === 429) return "rate-limited";
  // A proxy in front of Discord refused the call. Discord itself may accept the next one.
  if (isForeign && (status === 403 || status === 404)) return "unavailable";
  // A refused token ends the process through `onFatal`, and the next process continues the turn.
  if (status >= 500 || status === 401 || status === 408) return "unavailable";
  if (status === 403) return "forbidden";
  return status === 404 ? "gone" : "rejected";
}
