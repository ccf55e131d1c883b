import { SinkError, type SinkErrorKind } from "../../../src/port/errors.ts";
import { ApiError } from "../api/error.ts";

/** Discord's codes, where the status alone would say something else. https://docs.discord.com/developers/topics/opcodes-and-status-codes */
const CODES: ReadonlyArray<[SinkErrorKind, readonly number[]]> = [
  // The channel, the guild, the message or the interaction is no more.
  ["gone", [10003, 10004, 10008, 10015, 10062, 40060, 50027]],
  // Missing access, missing permissions, a person who takes no messages, a message that is not ours, a closed thread.
  ["forbidden", [30046, 50001, 50005, 50007, 50013, 50083, 50278, 160002, 160005]],
  // The words themselves: empty, too long, too large.
  ["rejected", [40005, 50006, 50035]],
  // Explicit content, what the server's own AutoMod blocks, and links that Discord takes for harmful.
  ["filtered", [20009, 200000, 240000]],
  ["unavailable", [130000]],
];
const KINDS = new Map(CODES.flatMap(([kind, codes]) => codes.map((code) => [code, kind] as const)));

/** Translates a refused or failed write for the core. Gives back a `SinkError` and an abort's own reason as they are. */
export function toSinkError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof SinkError) return error;
  if (!(error instanceof ApiError)) {
    // A network error names hosts and ports at most; the library's own errors may quote people's words.
    const words = error instanceof Error ? (readCode(error) ?? error.name) : "unknown";
    return new SinkError("unavailable", `Discord could not be reached (${words}).`);
  }
  const { logMessage, quote, retryAfterMs } = error;
  const kind = kindOf(error);
  const wait = kind === "rate-limited" ? { retryAfterMs: retryAfterMs ?? 1_000 } : {};
  return new SinkError(kind, logMessage, { quote, ...wait });
}

function kindOf({ status, code, isForeign }: ApiError): SinkErrorKind {
  const known = KINDS.get(code);
  if (known !== undefined) return known;
  if (status === 429) return "rate-limited";
  // Something on the way, which may let the next call through.
  if (isForeign && (status === 403 || status === 404)) return "unavailable";
  // A token that Discord refuses is told to `onFatal`, which ends the process; the next one goes on with the turn.
  if (status >= 500 || status === 401 || status === 408) return "unavailable";
  if (status === 403) return "forbidden";
  return status === 404 ? "gone" : "rejected";
}

function readCode(error: Error): string | undefined {
  const code = "code" in error ? error.code : undefined;
  return typeof code === "string" && /^\w{3,40}$/.test(code) ? code : undefined;
}
