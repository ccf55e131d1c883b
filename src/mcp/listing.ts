import { LoggableError } from "../port/errors.ts";
import { readPage as readPageInfo } from "./repair.ts";

/** All pages of one list together, in characters of JSON. */
const MAX_CHARS = 16 * 1024 * 1024;
/** Longest that one list takes. */
const MAX_MS = 30_000;
/** Some servers give a tool or two on each page. */
const MAX_PAGES = 500;

/** Asks a server for one page of a list. */
export type ReadPage<T> = (
  cursor: string | undefined,
  limits: { timeout: number; signal: AbortSignal },
) => Promise<{ items: readonly T[]; page: Record<string, unknown> }>;

/**
 * Reads all pages of a list, with one budget and one deadline for all of them. If they are used up, or a page after the
 * first cannot be had, resolves to what came before, and `onCut` receives the reason. Rejects if there is no first page.
 */
export async function readList<T>(
  readPage: ReadPage<T>,
  onCut: (reason: unknown) => void,
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
      onCut(error);
      return listed;
    }
    // Some servers answer with the same cursor for ever.
    if (cursor === undefined || seen.has(cursor)) return listed;
    seen.add(cursor);
  }
  onCut(new LoggableError(`it has more than ${MAX_PAGES} pages`));
  return listed;
}
