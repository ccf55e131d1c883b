import { createHash } from "node:crypto";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { mapBounded } from "../concurrency/deadlines.ts";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { AttachmentRef } from "../port/events.ts";
import type { Entries, Stores } from "../store/keyv.ts";
import { walk } from "../store/values.ts";
import type { ReadPicture } from "./reference-picture.ts";

const NAMESPACE = "copies";
/** The size of one stored value. It is small, so that other requests to the store don't wait long for it. */
const CHUNK_BYTES = 512 * 1024;
/** The size limits for the copies of one job, and for all copies. */
const MAX_JOB_BYTES = 32 * 1024 * 1024;
const MAX_TOTAL_BYTES = 512 * 1024 * 1024;
const CONCURRENCY = 2;
/** The total size is counted again after this time, so that expired copies no longer count. */
const RECOUNT_MS = 3_600_000;
/** A copy expires this long after its job. */
const SPARE_MS = 86_400_000;
/** If a copy is used after this share of its lifetime, the copy is stored again with a full lifetime. */
const REFRESH_SHARE = 0.1;

/** The owner of copies and links. Erasing the job or the person's data erases both. */
export interface CopyOwner {
  turnId: string;
  platform: string;
  authorId: string;
}

/** Copies of images that their platform stores only for a while, in a form that a model accepts. */
export interface PictureCopies {
  /** Copies each file that will disappear, once. Failures are only logged. Rejects only with the signal's reason. */
  keep(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<void>;
  /** Erases the job's copies of these files. */
  erase(refs: readonly AttachmentRef[], turnId: string): Promise<void>;
  forget(platform: string, authorId: string): Promise<void>;
}

export interface PictureCopiesOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  read: ReadPicture;
  log: Logger;
  maxTotalBytes?: number;
  maxJobBytes?: number;
}

const head = z.object({
  /** When the copy was written, in Unix milliseconds. */
  at: z.number(),
  turnId: z.string(),
  platform: z.string(),
  authorId: z.string(),
  sizeBytes: z.number(),
});

type Head = z.infer<typeof head>;

/** Resolves to a copy's bytes; undefined if no copy exists. Rejects if the store fails. */
export type OpenCopy = (ref: AttachmentRef) => Promise<AsyncIterable<Uint8Array> | undefined>;

export function createOpenCopy(open: Stores["open"]): OpenCopy {
  const keyv = open(NAMESPACE);
  return async (ref) => {
    const key = toFileKey(ref);
    const known = toHead(await keyv.get<unknown>(`of:${key}`));
    const bytes = known && (await readWhole(keyv, key, known));
    return bytes && toSource(bytes);
  };
}

export function createPictureCopies(options: PictureCopiesOptions): PictureCopies {
  const { read, log, maxTotalBytes = MAX_TOTAL_BYTES, maxJobBytes = MAX_JOB_BYTES } = options;
  const ttlMs = options.ttlMs + SPARE_MS;
  const keyv = options.open(NAMESPACE);
  // Parallel jobs of this process share one read of a file. Other processes may read it too, because reading takes too
  // long to hold a lock.
  const { run: inOwnTurn } = createKeyedQueue();
  const inTurn = <T>(key: string, task: (keyv: Entries) => Promise<T>) =>
    options.inTurn(`${NAMESPACE}:${key}`, (open) => task(open(NAMESPACE)));
  let counted = { bytes: 0, until: 0 };

  async function count(): Promise<void> {
    if (counted.until > Date.now()) return;
    let bytes = 0;
    for await (const [, value] of walk(options.open(`${NAMESPACE}:of`))) bytes += toHead(value)?.sizeBytes ?? 0;
    counted = { bytes, until: Date.now() + RECOUNT_MS };
  }

  async function write(keyv: Entries, key: string, bytes: Uint8Array, made: CopyOwner): Promise<void> {
    const owner = { platform: made.platform, id: made.authorId };
    for (const [index, chunk] of toChunks(bytes).entries()) {
      await keyv.put({ key: `data:${key}:${index}`, value: Buffer.from(chunk).toString("base64"), ttlMs, owner });
    }
    const { turnId, platform, authorId } = made;
    const value: Head = { at: Date.now(), turnId, platform, authorId, sizeBytes: bytes.byteLength };
    // The head is written last, because a copy without a head does not exist.
    await keyv.put({ key: `of:${key}`, value, ttlMs, owner });
  }

  /** Stores an old copy again with a full lifetime. Resolves to false if no copy exists. */
  async function refresh(keyv: Entries, key: string): Promise<boolean> {
    const known = toHead(await keyv.get<unknown>(`of:${key}`));
    if (known === undefined) return false;
    if (Date.now() - known.at < ttlMs * REFRESH_SHARE) return true;
    const bytes = await readWhole(keyv, key, known);
    if (bytes === undefined) return false;
    await write(keyv, key, bytes, known);
    return true;
  }

  async function erase(keyv: Entries, key: string, isErased: (owner: CopyOwner) => boolean): Promise<void> {
    const known = toHead(await keyv.get<unknown>(`of:${key}`));
    if (known === undefined || !isErased(known)) return;
    const { sizeBytes } = known;
    const chunks = Array.from({ length: Math.ceil(sizeBytes / CHUNK_BYTES) }, (_, index) => `data:${key}:${index}`);
    await keyv.deleteMany([`of:${key}`, ...chunks]);
    counted.bytes -= sizeBytes;
  }

  async function copy(ref: AttachmentRef, owner: CopyOwner, room: { bytes: number }, signal: AbortSignal) {
    const key = toFileKey(ref);
    if (await inTurn(key, (keyv) => refresh(keyv, key))) return;
    const picture = await read(ref, `${owner.platform}:${owner.authorId}`, signal);
    // Ignore the problem here, because the code that uses the file reports it.
    if ("problem" in picture) return;
    const sizeBytes = picture.bytes.byteLength;
    await count();
    if (sizeBytes > room.bytes || counted.bytes + sizeBytes > maxTotalBytes) {
      log.warn({ turnId: owner.turnId, sizeBytes }, "did not copy a reference image: no room left");
      return;
    }
    room.bytes -= sizeBytes;
    counted.bytes += sizeBytes;
    await inTurn(key, (keyv) => write(keyv, key, picture.bytes, owner));
  }

  return {
    async keep(refs, owner, signal) {
      const room = { bytes: maxJobBytes };
      const fleeting = refs.filter(({ isFleeting }) => isFleeting === true);
      await mapBounded(fleeting, CONCURRENCY, async (ref) => {
        try {
          await inOwnTurn(toFileKey(ref), () => copy(ref, owner, room, signal));
        } catch (err) {
          signal.throwIfAborted();
          log.warn({ err, turnId: owner.turnId }, "could not copy a reference image");
        }
      });
    },
    async erase(refs, turnId) {
      for (const key of new Set(refs.filter(({ isFleeting }) => isFleeting === true).map(toFileKey))) {
        await inTurn(key, (keyv) => erase(keyv, key, (owner) => owner.turnId === turnId));
      }
    },
    async forget(platform, authorId) {
      await keyv.eraseOf({ owner: { platform, id: authorId } });
      counted.until = 0;
    },
  };
}

async function readWhole(keyv: Keyv, key: string, { sizeBytes }: Head): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  for (let index = 0; index * CHUNK_BYTES < sizeBytes; index++) {
    const chunk = await keyv.get<unknown>(`data:${key}:${index}`);
    if (typeof chunk !== "string") return undefined;
    parts.push(Buffer.from(chunk, "base64"));
  }
  const bytes = Buffer.concat(parts);
  return bytes.byteLength === sizeBytes ? bytes : undefined;
}

function toHead(value: unknown): Head | undefined {
  const { success, data } = head.safeParse(value);
  return success ? data : undefined;
}

/** Hashes the file's id, because the id can be a signed address, which must not be stored. */
export function toFileKey({ platform, id }: AttachmentRef): string {
  return createHash("sha256")
    .update(JSON.stringify([platform, id]))
    .digest("base64url");
}

function toChunks(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.byteLength / CHUNK_BYTES);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES));
}

async function* toSource(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
