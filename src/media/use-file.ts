import { createByteBudget } from "../concurrency/byte-budget.ts";
import { runWithin, untilAborted } from "../concurrency/deadlines.ts";
import { createFairTurns } from "../concurrency/fair-turns.ts";
import type { AttachmentRef } from "../port/events.ts";
import { findFileProblem } from "./file-problem.ts";
import { readBounded } from "./read-bounded.ts";

export type OpenAttachment = (ref: AttachmentRef, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;

export interface FileLimits {
  maxFileBytes: number;
  /** For opening and reading one file. */
  timeoutMs: number;
}

export interface FileToUse extends FileLimits {
  ref: AttachmentRef;
  open: OpenAttachment;
  /** The person for whom it is read, or another word for who has to wait; owners take turns. */
  owner: string;
  /** The problem of a larger file. */
  tooLarge: string;
}

/**
 * Reads a file for `use`; its bytes count against the memory of all files until then. `problem` completes "FILE …".
 * Rejects only with the signal's reason.
 */
export type UseFile = <T>(
  file: FileToUse,
  use: (bytes: Uint8Array) => Promise<T>,
  signal: AbortSignal,
) => Promise<T | { problem: string }>;

/** Room for five of the largest files while each holds no more than it leaves free. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** Longest that a file waits for those before it; a decoder is given as long. */
const WAIT_MS = 60_000;
const BUSY = "waited too long for other files that are being read; send it again in a minute";

/** The one place through which this process reads files of its platforms, so that the memory for them is bounded. */
export const useFile: UseFile = createUseFile();

export function createUseFile({ maxHeldBytes = MAX_HELD_BYTES, waitMs = WAIT_MS } = {}): UseFile {
  const budget = createByteBudget(maxHeldBytes);
  const inTurn = createFairTurns();

  return async ({ ref, open, owner, maxFileBytes, timeoutMs, tooLarge }, use, signal) => {
    if (ref.sizeBytes > maxFileBytes) return { problem: tooLarge };
    const held = budget.open();

    /** Keeps what was announced, so that a file that was begun finds room to its end. */
    async function reserve(patience: AbortSignal): Promise<void> {
      while (!held.hold(ref.sizeBytes)) await untilAborted(budget.released(), patience);
    }
    const share = { hold: (sizeBytes: number) => sizeBytes <= ref.sizeBytes || held.hold(sizeBytes) };
    const read = async (late: AbortSignal) =>
      readBounded(await open(ref, late), { maxBytes: maxFileBytes, share }, late);

    try {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
      const hasRoom = await inTurn(owner, () => reserve(patience), patience).then(
        () => true,
        () => false,
      );
      signal.throwIfAborted();
      if (!hasRoom) return { problem: BUSY };
      const bytes = await runWithin(timeoutMs, read, signal);
      if (bytes === "too-large") return { problem: tooLarge };
      return bytes === "no-room" ? { problem: BUSY } : await use(bytes);
    } catch (error) {
      signal.throwIfAborted();
      return { problem: describeFailure(error) };
    } finally {
      held.release();
    }
  };
}

/** A platform's answer is not for the channel, and may carry a signed address. */
function describeFailure(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") return "took too long to arrive";
  return findFileProblem(error)?.message ?? "could not be fetched; attach it again";
}
