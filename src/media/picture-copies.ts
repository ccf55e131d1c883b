import { createHash } from "node:crypto";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { mapBounded } from "../concurrency/deadlines.ts";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { keysOf, walk } from "../store/values.ts";
import type { ReadPicture } from "./reference-picture.ts";

const NAMESPACE = "copies";
/** Size of one value in the store: small enough that nothing else waits long for it. */
const CHUNK_BYTES = 512 * 1024;
/** Bounds of one job's copies, and of all that are kept. */
const MAX_JOB_BYTES = 32 * 1024 * 1024;
const MAX_TOTAL_BYTES = 512 * 1024 * 1024;
const CONCURRENCY = 2;
/** Copies that expired are taken off the count after this at the latest. */
const COUNTED_ANEW_MS = 3_600_000;
/** A copy outlives the job that it was made for. */
const SPARE_MS = 86_400_000;
/** A copy that is used is written anew once this share of its time is over. */
const REFRESH_SHARE = 0.1;

/** The owner of a copy, or of a link: both are erased with the job, and with the person's data. */
export interface CopyOwner {
  jobId: string;
  platform: string;
  authorId: string;
}

/** Copies of pictures that their platform keeps for a while only, as a model takes them. */
export interface PictureCopies {
  /** Copies files that will not stay, each once. Best effort, logged. Rejects only with the signal's reason. */
  keep(refs: readonly AttachmentRef[], owner: CopyOwner, signal: AbortSignal): Promise<void>;
  /** Erases, of these files, the copies that were made for a job. */
  erase(refs: readonly AttachmentRef[], jobId: string): Promise<void>;
  /** Erases the copies that were made for a person. */
  forget(platform: string, authorId: string): Promise<void>;
}

export interface PictureCopiesOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  /** Reads the picture from the platform. */
  read: ReadPicture;
  log: Logger;
  maxTotalBytes?: number;
  maxJobBytes?: number;
}

const head = z.object({
  v: z.literal(1),
  jobId: z.string(),
  platform: z.string(),
  authorId: z.string(),
  sizeBytes: z.number(),
});

type Head = z.infer<typeof head>;

/** The bytes of a copy; undefined when there is none. Rejects when the store does not answer. */
export type OpenCopy = (ref: AttachmentRef) => Promise<AsyncIterable<Uint8Array> | undefined>;

/** Opens what was copied, here or in another process. */
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
  // A file is read once for all who want it here at the same time; that takes too long for a turn among processes.
  const { run: inOwnTurn } = createKeyedQueue();
  const inTurn = <T>(key: string, task: () => Promise<T>) => options.inTurn(`${NAMESPACE}:${key}`, task);
  let counted = { bytes: 0, until: 0 };

  async function count(): Promise<void> {
    if (counted.until > Date.now()) return;
    let bytes = 0;
    for await (const [, value] of walk(options.open(`${NAMESPACE}:of`))) bytes += toHead(value)?.sizeBytes ?? 0;
    counted = { bytes, until: Date.now() + COUNTED_ANEW_MS };
  }

  async function write(key: string, bytes: Uint8Array, owner: Omit<Head, "v" | "sizeBytes">): Promise<void> {
    for (const [index, chunk] of toChunks(bytes).entries()) {
      await keyv.set(`data:${key}:${index}`, Buffer.from(chunk).toString("base64"), ttlMs);
    }
    const value: Head = { v: 1, ...owner, sizeBytes: bytes.byteLength };
    // The head is written last: without it there is no copy.
    await keyv.setMany([
      { key: `of:${key}`, value, ttl: ttlMs },
      { key: `${toOwnerKey(owner.platform, owner.authorId)}:${key}`, value: 1, ttl: ttlMs },
    ]);
  }

  /** Resolves to false when there is no copy; one that grows old is written anew. */
  async function refresh(key: string): Promise<boolean> {
    const raw = await keyv.getRaw(`of:${key}`);
    const known = toHead(raw?.value);
    if (known === undefined) return false;
    if ((raw?.expires ?? 0) - Date.now() > ttlMs * (1 - REFRESH_SHARE)) return true;
    const bytes = await readWhole(keyv, key, known);
    if (bytes === undefined) return false;
    await write(key, bytes, known);
    return true;
  }

  async function erase(key: string, isErased: (owner: CopyOwner) => boolean): Promise<void> {
    const known = toHead(await keyv.get<unknown>(`of:${key}`));
    if (known === undefined || !isErased(known)) return;
    const { sizeBytes, ...owner } = known;
    const chunks = Array.from({ length: Math.ceil(sizeBytes / CHUNK_BYTES) }, (_, index) => `data:${key}:${index}`);
    await keyv.deleteMany([`of:${key}`, `${toOwnerKey(owner.platform, owner.authorId)}:${key}`, ...chunks]);
    counted.bytes -= sizeBytes;
  }

  async function copy(ref: AttachmentRef, owner: CopyOwner, room: { bytes: number }, signal: AbortSignal) {
    const key = toFileKey(ref);
    if (await inTurn(key, () => refresh(key))) return;
    const picture = await read(ref, `${owner.platform}:${owner.authorId}`, signal);
    // Why it cannot be used is said where it is used.
    if ("problem" in picture) return;
    const sizeBytes = picture.bytes.byteLength;
    await count();
    if (sizeBytes > room.bytes || counted.bytes + sizeBytes > maxTotalBytes) {
      log.warn({ jobId: owner.jobId, sizeBytes }, "a reference is not copied: there is no room for it");
      return;
    }
    room.bytes -= sizeBytes;
    counted.bytes += sizeBytes;
    await inTurn(key, () => write(key, picture.bytes, owner));
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
          log.warn({ err, jobId: owner.jobId }, "a reference could not be copied");
        }
      });
    },
    async erase(refs, jobId) {
      for (const key of new Set(refs.filter(({ isFleeting }) => isFleeting === true).map(toFileKey))) {
        await inTurn(key, () => erase(key, (owner) => owner.jobId === jobId));
      }
    },
    async forget(platform, authorId) {
      for (const key of await keysOf(options.open(`${NAMESPACE}:${toOwnerKey(platform, authorId)}`))) {
        await inTurn(key, () => erase(key, () => true));
      }
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

/** The id of a file may be a signed address, which is no matter of the store. */
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
