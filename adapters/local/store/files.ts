import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { decode } from "../../../src/media/decoder.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import { sniffType } from "../../../src/media/sniff.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { OutboundFile } from "../../../src/port/sink.ts";
import type { FileRow } from "../page/wire.ts";
import type { Tables } from "./tables.ts";

export const MAX_FILE_BYTES = 20 * 1024 * 1024;
export const MAX_FILES = 10;
const SLICE_BYTES = 256 * 1024;
const NAME_CHARS = 120;
/** Keeps the end of a long name, which contains the extension. */
const NAME_TAIL_CHARS = 20;
const ORPHAN_AGE_MS = 24 * 60 * 60_000;
/** The image types that every browser draws and none executes. */
const SHOWN_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);

export function isShownType(contentType: string): boolean {
  return SHOWN_TYPES.has(contentType);
}

export interface StoredFile {
  name: string;
  contentType: string;
  isImage: boolean;
  sizeBytes: number;
  /** Rejects if the file is deleted meanwhile. Lets other events run after each slice. */
  slices(): AsyncIterable<Uint8Array>;
}

export interface PreparedFile {
  name: string;
  contentType: string;
  width: number | null;
  height: number | null;
  altText: string | null;
  isSpoiler: boolean;
  bytes: Uint8Array;
}

export interface Files {
  /** Stores a file that belongs to no message yet. 17 MiB in one write would block the event loop for 100 ms. */
  add(file: PreparedFile, at: number): Promise<FileRow>;
  areFree(ids: readonly string[]): boolean;
  /** Assigns uploads to a message, in this order. Call it inside a transaction. */
  attach(ids: readonly string[], messageId: number): void;
  /** Deletes files that belong to no message. Never throws. */
  drop(ids: readonly string[]): void;
  read(id: string): StoredFile | undefined;
  dropOrphans(now: number): void;
}

export function createFiles({ database }: Tables): Files {
  const insert = database.prepare(`INSERT INTO local_files
    (id, name, content_type, width, height, alt_text, is_spoiler, created_at, size_bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const insertSlice = database.prepare("INSERT INTO local_file_slices (file_id, position, bytes) VALUES (?, ?, ?)");
  const readSlice = database.prepare("SELECT bytes FROM local_file_slices WHERE file_id = ? AND position = ?");
  const free = database.prepare("SELECT 1 FROM local_files WHERE id = ? AND message_id IS NULL");
  const attach = database.prepare("UPDATE local_files SET message_id = ?, position = ? WHERE id = ?");
  const read = database.prepare("SELECT name, content_type, size_bytes FROM local_files WHERE id = ?");
  const dropOne = database.prepare("DELETE FROM local_files WHERE id = ?");
  const dropOld = database.prepare("DELETE FROM local_files WHERE message_id IS NULL AND created_at < ?");

  async function* slicesOf(id: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
    for (let at = 0, position = 0; at < sizeBytes; position++) {
      const bytes = readSlice.get(id, position)?.["bytes"];
      if (!(bytes instanceof Uint8Array) || bytes.length === 0) throw new Error(`The file ${id} is gone.`);
      yield bytes;
      at += bytes.length;
      await setImmediate();
    }
  }

  return {
    async add({ bytes, ...file }, at) {
      const id = randomUUID();
      const { name, contentType, width, height, altText, isSpoiler } = file;
      insert.run(id, name, contentType, width, height, altText, Number(isSpoiler), at, bytes.length);
      for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
        insertSlice.run(id, from / SLICE_BYTES, bytes.subarray(from, from + SLICE_BYTES));
        await setImmediate();
      }
      return { id, ...file, sizeBytes: bytes.length, isImage: isShownType(contentType) };
    },
    areFree: (ids) => ids.every((id) => free.get(id) !== undefined),
    attach: (ids, messageId) => ids.forEach((id, position) => void attach.run(messageId, position, id)),
    drop(ids) {
      try {
        for (const id of ids) dropOne.run(id);
      } catch {
        // The disk cannot be written now. A later cleanup deletes the files, because they belong to no message.
      }
    },
    read(id) {
      const row = read.get(id);
      if (row === undefined) return undefined;
      const contentType = String(row["content_type"]);
      const sizeBytes = Number(row["size_bytes"]);
      const isImage = isShownType(contentType);
      return { name: String(row["name"]), contentType, isImage, sizeBytes, slices: () => slicesOf(id, sizeBytes) };
    },
    dropOrphans: (now) => void dropOld.run(now - ORPHAN_AGE_MS),
  };
}

type NewFile = Omit<OutboundFile, "contentType">;

/** Finds a file's type in its bytes, because the sender can choose any name. */
export async function prepareFile(
  { name, bytes, altText = "", isSpoiler = false }: NewFile,
  signal: AbortSignal,
): Promise<PreparedFile> {
  const found = (await sniffType(bytes))?.mimeType;
  const isShown = found !== undefined && isShownType(found);
  const { width, height } = isShown ? await readSize(bytes, signal) : { width: null, height: null };
  return {
    name: toFileName(name),
    contentType: found ?? "application/octet-stream",
    width,
    height,
    altText: altText === "" ? null : altText,
    isSpoiler,
    bytes,
  };
}

/** Reads an attachment in slices. Rejects if its message is gone. */
export async function openFile(files: Files, ref: AttachmentRef): Promise<AsyncIterable<Uint8Array>> {
  const file = files.read(ref.id);
  if (file === undefined) {
    const cause = new FileProblem("gone", "is gone: its message was deleted");
    throw new Error(`The file ${JSON.stringify(ref.name)} ${cause.message}.`, { cause });
  }
  return file.slices();
}

async function readSize(
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<{ width: number | null; height: number | null }> {
  try {
    return await decode({ type: "measure", bytes }, "local", signal);
  } catch {
    signal.throwIfAborted();
    // The file starts like an image but cannot be read further. The browser can still try.
    return { width: null, height: null };
  }
}

function toFileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const letters = Array.from(last.replace(/[\p{Cc}\p{Cf}\p{Cs}]+/gu, "").trim());
  if (letters.length > NAME_CHARS)
    letters.splice(NAME_CHARS - NAME_TAIL_CHARS - 1, letters.length - NAME_CHARS + 1, "…");
  return letters.join("") || "file";
}
