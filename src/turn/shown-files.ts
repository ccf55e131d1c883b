import type { ContentPart } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import { nameFiles, type ShownFiles, toContentParts } from "../media/content-parts.ts";
import type { Files } from "../media/files.ts";

/** Files of this many of the newest messages that have any are shown; of older ones only the names. */
const MESSAGES_WITH_FILES = 4;

const NOT_READ = "Your files were not read: you may not have files read here.";

interface FilesOptions {
  files: Pick<Files, "load">;
  maxTokens: number;
  owner: string;
  /** False: files are only named. */
  showsFiles: boolean;
}

/** The files of a conversation, as one request shows them. */
export interface FilesInContext {
  partsOf(entry: HistoryEntry): ContentPart[];
  /** True where they are shown, and not only named. */
  isShown(entry: HistoryEntry): boolean;
  /** Estimated. */
  tokensOf(entry: HistoryEntry): number;
  /** One sentence of Markdown for each file of these messages that is not shown, or not whole. */
  noticesOf(messageIds: readonly string[]): string[];
}

/** Shows files of the newest entries within `maxTokens`. `owner` as in `Files`. Rejects with the signal's reason. */
export async function showFiles(
  entries: readonly HistoryEntry[],
  { files, maxTokens, owner, showsFiles }: FilesOptions,
  signal: AbortSignal,
): Promise<FilesInContext> {
  const shown = new Map<string, ShownFiles>();
  const withFiles = entries.filter(({ attachments }) => (attachments?.length ?? 0) > 0);
  let left = maxTokens;
  const read = showsFiles ? withFiles.slice(-MESSAGES_WITH_FILES) : [];
  for (const { id, attachments } of read.toReversed()) {
    const loaded = await files.load(attachments ?? [], owner, signal);
    const one = await toContentParts(loaded, left);
    left = Math.max(0, left - one.tokens);
    shown.set(id, one);
  }
  const toShown = (entry: HistoryEntry) =>
    shown.get(entry.id) ?? nameFiles((entry.attachments ?? []).map(({ name }) => name));
  return {
    partsOf: (entry) => toShown(entry).parts,
    isShown: ({ id }) => shown.has(id),
    tokensOf: (entry) => toShown(entry).tokens,
    noticesOf(messageIds) {
      const isLeftOut = !showsFiles && withFiles.some(({ id }) => messageIds.includes(id));
      return isLeftOut ? [NOT_READ] : messageIds.flatMap((id) => shown.get(id)?.notices ?? []);
    },
  };
}
