import { createByteBudget } from "../concurrency/byte-budget.ts";
import { runWithin, untilAborted } from "../concurrency/deadlines.ts";
import { createFairTurns } from "../concurrency/fair-turns.ts";
import type { AttachmentRef } from "../port/events.ts";
import { findFileProblem } from "./file-problem.ts";
import { readBounded } from "./read-bounded.ts";

export type OpenAttachment = (ref: AttachmentRef, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>;

export interface FileLimits {
  maxFileBytes: number;
  /** Timeout for opening and reading one file. */
  timeoutMs: number;
}

export interface FileToUse extends FileLimits {
  ref: AttachmentRef;
  open: OpenAttachment;
  /** Owners take turns; an owner is the person who waits for the file, or another key. */
  owner: string;
  /** The problem to report for a file that exceeds the limit. */
  tooLarge: string;
}

/**
 * Reads a file for `use`. Until `use` is done, the bytes count against the memory for all files. `problem` completes
 * "FILE …". Rejects only with the signal's reason.
 */
export type UseFile = <T>(
  file: FileToUse,
  use: (bytes: Uint8Array) => Promise<T>,
  signal: AbortSignal,
) => Promise<T | { problem: string }>;

/** Room for five of the largest files, if each declares its size correctly. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** The longest wait for earlier files. It is the same as the decoder's. */
const WAIT_MS = 60_000;
const BUSY = "waited too long behind other files; send it again in a minute";

/** Reads all files of this process, so that their memory is limited together. */
export const useFile: UseFile = createUseFile();

export function createUseFile({ maxHeldBytes = MAX_HELD_BYTES, waitMs = WAIT_MS } = {}): UseFile {
  const budget = createByteBudget(maxHeldBytes);
  const inTurn = createFairTurns();

  return async ({ ref, open, owner, maxFileBytes, timeoutMs, tooLarge }, use, signal) => {
    if (ref.sizeBytes > maxFileBytes) return { problem: tooLarge };
    const held = budget.open();

    /** Reserves the declared size first, so that there is room to read a started file to its end. */
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

/** Describes a failure without the platform's response, because the response can contain a signed address. */
function describeFailure(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") return "took too long to arrive";
  return findFileProblem(error)?.message ?? "could not be fetched; attach it again";
}
