import { inflateRawSync } from "node:zlib";
import { DAMAGED, DocumentError, PROTECTED } from "./document.ts";

// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
const END = 0x06054b50;
const DIRECTORY = 0x02014b50;
const END_BYTES = 22;
const DIRECTORY_BYTES = 46;
const LOCAL_BYTES = 30;
const MAX_COMMENT_BYTES = 65_535;
const MAX_ENTRIES = 10_000;
const DEFLATED = 8;
const IS_ENCRYPTED = 1;
/** Only these files of an Office document are read, so its images are never unpacked. */
const READ_PARTS = /\.(xml|rels)$/i;

interface Entry {
  name: string;
  isEncrypted: boolean;
  method: number;
  packedBytes: number;
  offset: number;
}

/** Lists the file names in a ZIP archive; undefined for any other or damaged file. */
export function listArchive(bytes: Uint8Array): string[] | undefined {
  return readEntries(toView(bytes))?.map(({ name }) => name);
}

/** Unpacks an archive to measure its real size. Throws a `DocumentError` if the archive is damaged or too large. */
export function checkArchive(bytes: Uint8Array, maxBytes: number): void {
  let left = maxBytes;
  const view = toView(bytes);
  for (const entry of readEntries(view) ?? []) {
    if (!READ_PARTS.test(entry.name)) continue;
    if (entry.isEncrypted) throw new DocumentError(PROTECTED);
    left -= unpackedBytes(view, entry, left);
    if (left < 0) {
      throw new DocumentError(
        `unpacks to more than ${Math.floor(maxBytes / 1024 / 1024)} MiB; send the relevant part, or export it as PDF or CSV`,
      );
    }
  }
}

function toView(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function readEntries(view: Buffer): Entry[] | undefined {
  const end = findEnd(view);
  if (end === undefined) return undefined;
  const count = view.readUInt16LE(end + 10);
  if (count > MAX_ENTRIES) throw new DocumentError(`contains more than ${MAX_ENTRIES} packed files`);
  const entries: Entry[] = [];
  let at = view.readUInt32LE(end + 16);
  for (let index = 0; index < count; index++) {
    if (at + DIRECTORY_BYTES > view.byteLength || view.readUInt32LE(at) !== DIRECTORY) return undefined;
    const nameBytes = view.readUInt16LE(at + 28);
    entries.push({
      name: view.toString("utf8", at + DIRECTORY_BYTES, at + DIRECTORY_BYTES + nameBytes),
      isEncrypted: (view.readUInt16LE(at + 8) & IS_ENCRYPTED) !== 0,
      method: view.readUInt16LE(at + 10),
      packedBytes: view.readUInt32LE(at + 20),
      offset: view.readUInt32LE(at + 42),
    });
    at += DIRECTORY_BYTES + nameBytes + view.readUInt16LE(at + 30) + view.readUInt16LE(at + 32);
  }
  return entries;
}

function findEnd(view: Buffer): number | undefined {
  const first = Math.max(0, view.byteLength - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = view.byteLength - END_BYTES; at >= first; at--) if (view.readUInt32LE(at) === END) return at;
  return undefined;
}

/** Returns the unpacked size of an entry. For an entry above `maxBytes`, returns any number above `maxBytes`. */
function unpackedBytes(view: Buffer, { method, packedBytes, offset }: Entry, maxBytes: number): number {
  if (method !== DEFLATED) return packedBytes;
  try {
    const start = offset + LOCAL_BYTES + view.readUInt16LE(offset + 26) + view.readUInt16LE(offset + 28);
    return inflateRawSync(view.subarray(start, start + packedBytes), { maxOutputLength: Math.max(1, maxBytes) })
      .byteLength;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return maxBytes + 1;
    throw new DocumentError(DAMAGED, { cause });
  }
}
