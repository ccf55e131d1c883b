import { existsSync, lstatSync, rmdirSync, rmSync, statfsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Finding } from "../port/finding.ts";
import { DatabaseError, openDatabase } from "../store/database.ts";

const MIN_FREE_BYTES = 200 * 1024 * 1024;

/** Tries the folder of the database with a database of its own, which is gone afterwards, as is a folder it had to make. */
export function checkData(dataDir: string): Finding[] {
  const folder = resolve(dataDir);
  const made = foldersToMake(folder);
  try {
    // Its folder is made where it is absent, in the way that the service makes it.
    openDatabase(join(folder, ".doctor.sqlite")).close();
    return [
      { ok: true, what: `DATA_DIR ${folder} can be written to${made.length > 0 ? " and will be made" : ""}.` },
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
    return { ok: true, what: `There is room on its disk (${describeMiB(freeBytes)} free).` };
  return { ok: false, what: `Its disk is almost full (${describeMiB(freeBytes)} free).`, fix: "Free some space." };
}

/** The folder and those above it that are absent, the innermost first. */
function foldersToMake(folder: string): string[] {
  if (existsSync(folder) || dirname(folder) === folder) return [];
  return [folder, ...foldersToMake(dirname(folder))];
}

/** A file, or a folder that is empty. */
function remove(path: string): void {
  try {
    if (lstatSync(path).isDirectory()) rmdirSync(path);
    else rmSync(path);
  } catch {
    // It was never made, or somebody else uses it meanwhile.
  }
}

function describeMiB(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024).toLocaleString("en")} MiB`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
