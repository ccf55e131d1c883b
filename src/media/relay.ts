import type { Logger } from "pino";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toOwnerKey } from "../store/key-part.ts";
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

/** The store knows which file a link leads to: the link itself does not say. */
export interface RelayDeps extends Pick<Stores, "open"> {
  /** The first signs, all verify. At least 32 characters each. */
  keys: readonly [string, ...string[]];
  /** Reads a file again whose bytes are no longer kept, or are kept by another process. */
  read: ReadPicture;
  /** Asks the platform if a file is not there any more; false where that cannot be told just now. */
  isGone(ref: AttachmentRef): Promise<boolean>;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
  /** Bound of all pictures that are kept at hand. */
  maxBytes?: number;
}

/** Hands private pictures to the gateway, which takes them by links that anybody could open. */
export interface Relay {
  /** The path of a link to a picture that works for half an hour, or until it is erased. Rejects if the store fails. */
  publish(ref: AttachmentRef, picture: RelayedPicture, owner: CopyOwner): Promise<string>;
  /** The picture behind a path as requested; undefined for none. Rejects only with the signal's reason. */
  open(path: string, signal: AbortSignal): Promise<RelayedPicture | undefined>;
  /** Ends the links to these files: those that were made for a job, or all. Rejects when the store fails. */
  erase(refs: readonly AttachmentRef[], jobId?: string): Promise<void>;
  /** Ends the links that were made for a person. Rejects when the store fails. */
  forget(platform: string, authorId: string): Promise<void>;
}

/** A link to a file. Links that an earlier version made have no owner. */
interface StoredFile {
  v: 1;
  ref: AttachmentRef;
  owner?: CopyOwner;
}

const NAMESPACE = "relay";

/** A request for a picture may take ten minutes, and may have waited for another one. */
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
    // Private pictures do not stay in memory for longer than they are needed.
    setTimeout(kept.sweep, Math.max(0, expiresAtMs - now()) + 1).unref();
  }

  /** The fetch that the first request began; later ones wait for the same. */
  function reopen(claim: RelayClaim, ref: AttachmentRef): Promise<RelayedPicture | undefined> {
    const opening = running.get(claim.id) ?? readAgain(claim, ref).finally(() => running.delete(claim.id));
    running.set(claim.id, opening);
    return opening;
  }

  async function readAgain({ id, mimeType, expiresAt }: RelayClaim, ref: AttachmentRef) {
    try {
      // Bounded by the reader, and not ended when one of those who wait leaves.
      const picture = await read(ref, "relay", new AbortController().signal);
      if (!("problem" in picture) && picture.mimeType === mimeType) {
        keep(id, picture, expiresAt * 1_000);
        return picture;
      }
      log.warn({ problem: "problem" in picture ? picture.problem : "is of another type" }, "a relayed file is gone");
    } catch (error) {
      // Only its name: the message of a platform's error may hold an address.
      log.warn({ error: error instanceof Error ? error.name : "unknown" }, "a relayed file cannot be read again");
    }
    return undefined;
  }

  /** The store knows if the link is still good, whichever process made it; the bytes count only then. */
  async function find(claim: RelayClaim): Promise<RelayedPicture | undefined> {
    const stored = await keyv.get<StoredFile>(claim.id);
    const picture = kept.get(claim.id);
    if (stored?.v === 1 && picture === undefined) return reopen(claim, stored.ref);
    if (stored?.v === 1 && !(await isGone(stored.ref))) return picture;
    kept.delete(claim.id);
    return undefined;
  }

  async function erase(id: string): Promise<void> {
    const stored = await keyv.get<StoredFile>(id);
    kept.delete(id);
    await keyv.deleteMany([id, ...(stored?.v === 1 ? toIndexKeys(id, stored) : [])]);
  }

  const idsOf = (index: string) => keysOf(deps.open(`${NAMESPACE}:${index}`));

  return {
    async publish(ref, { bytes, mimeType }, owner) {
      const expiresAt = Math.ceil((now() + LIFETIME_MS) / 1_000);
      const { id, path } = tokens.create(mimeType, expiresAt);
      const ttl = LIFETIME_MS + 1_000;
      const stored: StoredFile = { v: 1, ref, owner };
      const index = toIndexKeys(id, stored).map((key) => ({ key, value: 1, ttl }));
      await keyv.setMany([{ key: id, value: stored, ttl }, ...index]);
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
        log.warn({ error: error instanceof Error ? error.name : "unknown" }, "a link could not be checked");
        return undefined;
      }
    },
    async erase(refs, jobId) {
      for (const file of new Set(refs.map(toFileKey))) {
        for (const id of await idsOf(`of:${file}`)) {
          const stored = await keyv.get<StoredFile>(id);
          if (jobId === undefined || stored?.owner?.jobId === jobId) await erase(id);
        }
      }
    },
    async forget(platform, authorId) {
      for (const id of await idsOf(toOwnerKey(platform, authorId))) await erase(id);
    },
  };
}

/** Keys that find a link by its file, and by the person it was made for. */
function toIndexKeys(id: string, { ref, owner }: StoredFile): string[] {
  return [
    `of:${toFileKey(ref)}:${id}`,
    ...(owner === undefined ? [] : [`${toOwnerKey(owner.platform, owner.authorId)}:${id}`]),
  ];
}
