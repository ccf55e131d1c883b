import { LoggableError } from "../port/errors.ts";
import { readPage as readPageInfo } from "./repair.ts";

/** Maximum size of all pages of one list, in characters of JSON. */
const MAX_CHARS = 16 * 1024 * 1024;
/** Timeout for all pages of one list. */
const MAX_MS = 30_000;
/** Some servers return only one or two tools per page. */
const MAX_PAGES = 500;

export type ReadPage<T> = (
  cursor: string | undefined,
  limits: { timeout: number; signal: AbortSignal },
) => Promise<{ items: readonly T[]; page: Record<string, unknown> }>;

/**
 * Reads all pages of a list. If a limit is reached or a later page fails, resolves to the pages before and passes the
 * reason to `onTruncated`. Rejects if the first page fails.
 */
export async function readList<T>(
  readPage: ReadPage<T>,
  onTruncated: (reason: unknown) => void,
  signal: AbortSignal,
): Promise<T[]> {
  const limits = { timeout: MAX_MS, signal: AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)]) };
  const listed: T[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let chars = 0;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    try {
      const { items, page } = await readPage(cursor, limits);
      const { nextCursor, chars: more } = readPageInfo(page);
      chars += more;
      if (chars > MAX_CHARS) throw new LoggableError(`it has more than ${MAX_CHARS} characters`);
      for (const item of items) listed.push(item);
      cursor = nextCursor;
    } catch (error) {
      signal.throwIfAborted();
      if (pages === 0) throw error;
      onTruncated(error);
      return listed;
    }
    // Some servers return the same cursor forever.
    if (cursor === undefined || seen.has(cursor)) return listed;
    seen.add(cursor);
  }
  onTruncated(new LoggableError(`it has more than ${MAX_PAGES} pages`));
  return listed;
}
