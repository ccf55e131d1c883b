import type { Keyv } from "keyv";
import type { Logger } from "pino";
import type { AttachmentRef } from "../adapter.ts";
import { untilAborted } from "../bounds.ts";
import { createByteCache } from "./byte-cache.ts";
import type { ReadPicture } from "./reference-picture.ts";
import { createRelayTokens, type RelayClaim } from "./relay-token.ts";
import type { ImageMimeType } from "./sniff.ts";

export interface RelayedPicture {
  bytes: Uint8Array;
  mimeType: ImageMimeType;
}

export interface RelayDeps {
  /** The first signs, all verify. At least 32 characters each. */
  keys: readonly [string, ...string[]];
  /** Which file a link leads to: nothing of that stands in the link. */
  keyv: Keyv;
  /** Reads a file again whose bytes are no longer kept, or are kept by another process. */
  read: ReadPicture;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
  lifetimeMs?: number;
  /** Of all pictures that are kept at hand. */
  maxBytes?: number;
}

/** Hands private pictures to the gateway, which takes them by links that anybody could open. */
export interface Relay {
  /** The path of a link to a picture, made from this attachment, that works for half an hour. Rejects when the store fails. */
  publish(ref: AttachmentRef, picture: RelayedPicture): Promise<string>;
  /**
   * The picture behind a path, exactly as it was requested. Undefined when there is none, whatever the reason; rejects
   * only with the signal's reason.
   */
  open(path: string, signal: AbortSignal): Promise<RelayedPicture | undefined>;
}

interface StoredFile {
  v: 1;
  ref: AttachmentRef;
}

/** A request for a picture may take ten minutes, and may have waited for another one. */
const LIFETIME_MS = 30 * 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

export function createRelay(deps: RelayDeps): Relay {
  const { keyv, read, log, now, lifetimeMs = LIFETIME_MS, maxBytes = MAX_BYTES } = deps;
  const tokens = createRelayTokens(deps.keys);
  const kept = createByteCache<RelayedPicture>(maxBytes, now);
  const running = new Map<string, Promise<RelayedPicture | undefined>>();

  function keep(id: string, picture: RelayedPicture, expiresAtMs: number): void {
    kept.set(id, picture, picture.bytes.byteLength, expiresAtMs);
    // Private pictures do not stay in memory for longer than they are needed.
    setTimeout(kept.sweep, Math.max(0, expiresAtMs - now()) + 1).unref();
  }

  /** By whoever asks first; others wait for the same. */
  function reopen(claim: RelayClaim): Promise<RelayedPicture | undefined> {
    const opening = running.get(claim.id) ?? readAgain(claim).finally(() => running.delete(claim.id));
    running.set(claim.id, opening);
    return opening;
  }

  async function readAgain({ id, mimeType, expiresAt }: RelayClaim): Promise<RelayedPicture | undefined> {
    try {
      const stored = await keyv.get<StoredFile>(id);
      if (stored?.v !== 1) return undefined;
      // Bounded by the reader, and not ended when one of those who wait leaves.
      const picture = await read(stored.ref, new AbortController().signal);
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

  return {
    async publish(ref, { bytes, mimeType }) {
      const expiresAt = Math.ceil((now() + lifetimeMs) / 1_000);
      const { id, path } = tokens.create(mimeType, expiresAt);
      await keyv.set(id, { v: 1, ref } satisfies StoredFile, lifetimeMs + 1_000);
      keep(id, { bytes, mimeType }, expiresAt * 1_000);
      return path;
    },
    async open(path, signal) {
      const claim = tokens.verify(path, now() / 1_000);
      if (claim === undefined) return undefined;
      return kept.get(claim.id) ?? (await untilAborted(reopen(claim), signal));
    },
  };
}
