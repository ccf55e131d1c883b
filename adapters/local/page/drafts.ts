import type { State, Upload, Writing } from "./state.ts";
import type { FileRow } from "./wire.ts";

const PREFIX = "palaver.draft.";
/** Older drafts are dropped. */
const KEPT_MS = 30 * 24 * 60 * 60_000;

interface Stored {
  /** Unix milliseconds. */
  at: number;
  writing: Writing;
}

/** The drafts of the last visit, by chat. */
export function readDrafts(now: number): Map<string, Writing> {
  const drafts = new Map<string, Writing>();
  for (const key of Object.keys(localStorage)) {
    if (!key.startsWith(PREFIX)) continue;
    const stored = readStored(key);
    if (stored === undefined || now - stored.at > KEPT_MS) localStorage.removeItem(key);
    else drafts.set(key.slice(PREFIX.length), stored.writing);
  }
  return drafts;
}

/** Saves changed drafts, so that they survive a reload. `kept`: the drafts that are already saved. */
export function createDraftKeeper(kept: ReadonlyMap<string, Writing>): (state: State) => void {
  return ({ writing }) => {
    for (const key of kept.keys()) if (!writing.has(key)) localStorage.removeItem(PREFIX + key);
    for (const [key, each] of writing) if (kept.get(key) !== each) keep(PREFIX + key, each);
    kept = new Map(writing);
  };
}

function keep(key: string, writing: Writing): void {
  const uploads = toKept(writing.uploads);
  if (writing.text === "" && uploads.length === 0 && writing.picture === undefined) return localStorage.removeItem(key);
  const aside = writing.aside && { ...writing.aside, uploads: toKept(writing.aside.uploads) };
  const stored: Stored = { at: Date.now(), writing: { ...writing, uploads, aside, isWaiting: false } };
  try {
    localStorage.setItem(key, JSON.stringify(stored));
  } catch {
    // The browser's storage is full, so the draft exists only on this page.
  }
}

function readStored(key: string): Stored | undefined {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "") as Stored;
  } catch {
    return undefined;
  }
}

/** Drops unfinished uploads: only files that the server already has can be restored. */
function toKept(uploads: readonly Upload[]): Upload[] {
  return uploads.flatMap(({ file }) => (file === undefined ? [] : [toUpload(file)]));
}

export function toUpload(file: FileRow): Upload {
  const previewUrl = file.isImage ? `/local/files/${file.id}` : "";
  return { key: file.id, name: file.name, previewUrl, progress: 1, file, problem: "" };
}
