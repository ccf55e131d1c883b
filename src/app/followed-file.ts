import { statSync } from "node:fs";
import type { Logger } from "pino";

/** Milliseconds between two looks at the file. */
const LOOK_MS = 2_000;

export interface FollowedFileOptions<T> {
  path: string;
  /** The variable that names the file, for the log. */
  variable: string;
  read(): T & { problems: readonly string[] };
  /** Told of each change that has no problem. */
  onChange(content: T): void;
  log: Logger;
}

/** Follows what becomes of a file of the configuration until the function it returns is called: a file with problems changes nothing. */
export function followFile<T>({ path, variable, read, onChange, log }: FollowedFileOptions<T>): () => void {
  let seen = changedAt(path);
  let last = seen;
  function look(): void {
    const now = changedAt(path);
    // Half of a file may well be valid: it is read once nobody has written to it for a while.
    const isWritten = now === last;
    last = now;
    if (now === seen || !isWritten) return;
    seen = now;
    const content = read();
    if (content.problems.length > 0) {
      log.error(
        { path, problems: content.problems },
        `${variable} has changed and has problems; what was read before stays in force`,
      );
      return;
    }
    log.info({ path }, `${variable} has changed and is taken up`);
    onChange(content);
  }
  // By its clock and not by `fs.watch`, which loses files that are renamed into place and mounted volumes.
  const timer = setInterval(look, LOOK_MS).unref();
  return () => clearInterval(timer);
}

/** Unix milliseconds; undefined where there is no such file. */
function changedAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
