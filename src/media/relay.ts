import type { Logger } from "pino";
import { z } from "zod";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { AttachmentRef } from "../port/events.ts";
import type { Stores } from "../store/keyv.ts";
import { keysOf } from "../store/values.ts";
import { createByteCache } from "./byte-cache.ts";
import { type CopyOwner, toFileKey } from "./picture-copies.ts";
import type { ReadPicture } from "./reference-picture.ts";
import { createRelayTokens, type RelayClaim } from "./relay-token.ts";
import type { ImageMimeType } from "./sniff.ts";

export interface RelayedPicture {
  bytes: Uint8Array;
  mimeType: ImageMimeType;
}

/** A link does not reveal its file: only the store knows to which file a link belongs. */
export interface RelayDeps extends Pick<Stores, "open"> {
  /** The first key signs, and all keys verify. Each has at least 32 characters. */
  keys: readonly [string, ...string[]];
  /** Reads a file whose bytes this process does not have. */
  read: ReadPicture;
  /** Asks the platform whether a file was deleted. False if the platform cannot say. */
  isGone(ref: AttachmentRef): Promise<boolean>;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
  /** The size limit for all images in memory. */
  maxBytes?: number;
}

/** Gives the gateway links to private images. Anyone who has a link can open it. */
export interface Relay {
  /** Returns the path of a link, which works for half an hour or until it is erased. Rejects if the store fails. */
  publish(ref: AttachmentRef, picture: RelayedPicture, owner: CopyOwner): Promise<string>;
  /** Opens the image at a requested path; undefined without a valid link. Rejects only with the signal's reason. */
  open(path: string, signal: AbortSignal): Promise<RelayedPicture | undefined>;
  /** Erases all links to these files, or only a job's links. Rejects if the store fails. */
  erase(refs: readonly AttachmentRef[], turnId?: string): Promise<void>;
  /** Erases the links made for a person. Rejects if the store fails. */
  forget(platform: string, authorId: string): Promise<void>;
}

/** The schema is loose, because the port declares further fields of a file reference. */
const fileRef: z.ZodType<AttachmentRef> = z.looseObject({
  platform: z.string(),
  id: z.string(),
  name: z.string(),
  sizeBytes: z.number(),
});
const storedFile = z.object({
  ref: fileRef,
  owner: z.object({ turnId: z.string(), platform: z.string(), authorId: z.string() }),
});

type StoredFile = z.infer<typeof storedFile>;

const NAMESPACE = "relay";

/** An image request can take ten minutes, and can first wait for another image request. */
const LIFETIME_MS = 30 * 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

export function createRelay(deps: RelayDeps): Relay {
  const { read, isGone, log, now, maxBytes = MAX_BYTES } = deps;
  const keyv = deps.open(NAMESPACE);
  const tokens = createRelayTokens(deps.keys);
  const kept = createByteCache<RelayedPicture>(maxBytes, now);
  const running = new Map<string, Promise<RelayedPicture | undefined>>();

  function keep(id: string, picture: RelayedPicture, expiresAtMs: number): void {
    kept.set(id, picture, picture.bytes.byteLength, expiresAtMs);
    // Private images leave memory as soon as they expire.
    setTimeout(kept.sweep, Math.max(0, expiresAtMs - now()) + 1).unref();
  }

  /** Concurrent requests share the first request's fetch. */
  function reopen(claim: RelayClaim, ref: AttachmentRef): Promise<RelayedPicture | undefined> {
    const opening = running.get(claim.id) ?? readAgain(claim, ref).finally(() => running.delete(claim.id));
    running.set(claim.id, opening);
    return opening;
  }

  async function readAgain({ id, mimeType, expiresAt }: RelayClaim, ref: AttachmentRef) {
    try {
      // `read` has its own timeout. If one caller disconnects, the fetch must continue for the other callers.
      const picture = await read(ref, "relay", new AbortController().signal);
      if (!("problem" in picture) && picture.mimeType === mimeType) {
        keep(id, picture, expiresAt * 1_000);
        return picture;
      }
      log.warn(
        { problem: "problem" in picture ? picture.problem : "has a different type" },
        "a relayed file is no longer available",
      );
    } catch (error) {
      // Logs only the error's name, because the message of a platform's error can contain an address.
      log.warn({ error: error instanceof Error ? error.name : "unknown" }, "could not read a relayed file again");
    }
    return undefined;
  }

  /** The store decides whether a link is valid, because another process may have created or erased it. */
  async function find(claim: RelayClaim): Promise<RelayedPicture | undefined> {
    const stored = await load(claim.id);
    const picture = kept.get(claim.id);
    if (stored !== undefined && picture === undefined) return reopen(claim, stored.ref);
    if (stored !== undefined && !(await isGone(stored.ref))) return picture;
    kept.delete(claim.id);
    return undefined;
  }

  async function load(id: string): Promise<StoredFile | undefined> {
    return storedFile.safeParse(await keyv.get<unknown>(id)).data;
  }

  async function erase(id: string): Promise<void> {
    const stored = await load(id);
    kept.delete(id);
    await keyv.deleteMany([id, ...(stored === undefined ? [] : [toFileIndexKey(id, stored)])]);
  }

  const idsOf = (index: string) => keysOf(deps.open(`${NAMESPACE}:${index}`));

  return {
    async publish(ref, { bytes, mimeType }, owner) {
      const expiresAt = Math.ceil((now() + LIFETIME_MS) / 1_000);
      const { id, path } = tokens.create(mimeType, expiresAt);
      const stored: StoredFile = { ref, owner };
      const common = { ttlMs: LIFETIME_MS + 1_000, owner: { platform: owner.platform, id: owner.authorId } };
      await keyv.write([
        { key: id, value: stored, ...common },
        { key: toFileIndexKey(id, stored), value: 1, ...common },
      ]);
      keep(id, { bytes, mimeType }, expiresAt * 1_000);
      return path;
    },
    async open(path, signal) {
      const claim = tokens.verify(path, now() / 1_000);
      if (claim === undefined) return undefined;
      try {
        return await untilAborted(find(claim), signal);
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ error: error instanceof Error ? error.name : "unknown" }, "could not check a relay link");
        return undefined;
      }
    },
    async erase(refs, turnId) {
      for (const file of new Set(refs.map(toFileKey))) {
        for (const id of await idsOf(`of:${file}`)) {
          if (turnId === undefined || (await load(id))?.owner.turnId === turnId) await erase(id);
        }
      }
    },
    async forget(platform, authorId) {
      const owner = { platform, id: authorId };
      for (const id of await keyv.keysOf(owner)) kept.delete(id);
      await keyv.eraseOf({ owner });
    },
  };
}

function toFileIndexKey(id: string, { ref }: Pick<StoredFile, "ref">): string {
  return `of:${toFileKey(ref)}:${id}`;
}
