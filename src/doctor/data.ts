import { existsSync, lstatSync, rmdirSync, rmSync, statfsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Finding } from "../port/finding.ts";
import { DatabaseError, openDatabase, openForReading } from "../store/database.ts";

const MIN_FREE_BYTES = 200 * 1024 * 1024;

/**
 * Checks that the service can write to its folder. Creates a temporary database there, then removes it and all folders
 * that it created.
 */
export function checkData(dataDir: string): Finding[] {
  const folder = resolve(dataDir);
  const made = foldersToMake(folder);
  try {
    openDatabase(join(folder, ".doctor.sqlite")).close();
    const stored = join(folder, "palaver.sqlite");
    if (existsSync(stored)) openForReading(stored).close();
    return [
      { ok: true, what: `DATA_DIR ${folder} is writable${made.length > 0 ? " and will be created" : ""}.` },
      checkSpace(folder),
    ];
  } catch (error) {
    const words =
      error instanceof DatabaseError ? error.message : `DATA_DIR ${folder} cannot be used (${codeOf(error)}).`;
    return [{ ok: false, what: words }];
  } finally {
    const files = ["", "-wal", "-shm", ".lock"].map((suffix) => join(folder, `.doctor.sqlite${suffix}`));
    for (const path of [...files, ...made]) remove(path);
  }
}

function checkSpace(folder: string): Finding {
  const { bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes >= MIN_FREE_BYTES)
    return { ok: true, what: `Its disk has enough space (${describeMiB(freeBytes)} free).` };
  return { ok: false, what: `Its disk is almost full (${describeMiB(freeBytes)} free).`, fix: "Free some space." };
}

/** Lists which of this folder and its parents are missing, innermost first. */
function foldersToMake(folder: string): string[] {
  if (existsSync(folder) || dirname(folder) === folder) return [];
  return [folder, ...foldersToMake(dirname(folder))];
}

function remove(path: string): void {
  try {
    if (lstatSync(path).isDirectory()) rmdirSync(path);
    else rmSync(path);
  } catch {
    // Ignore the error: the path was never created, or another program uses it now.
  }
}

function describeMiB(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024).toLocaleString("en")} MiB`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
