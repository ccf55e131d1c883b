import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { ImageMimeType } from "./sniff.ts";

export interface RelayClaim {
  /** The file's key in the store. */
  id: string;
  mimeType: ImageMimeType;
  /** Unix seconds. */
  expiresAt: number;
}

export interface RelayTokens {
  create(mimeType: ImageMimeType, expiresAt: number): { id: string; path: string };
  /** Undefined for a path that has expired, or that was not signed here for this purpose. */
  verify(path: string, nowSeconds: number): RelayClaim | undefined;
}

/** Signed together with the path, so that no other use of the key, and no later format, produces a valid link. */
const PURPOSE = "palaver relay v1";
const EXPIRY_BYTES = 6;
const ID_BYTES = 16;
const MAC_BYTES = 32;
/** Must be a whole number, so that equal bytes always result in the same text. */
const TOKEN_CHARS = ((EXPIRY_BYTES + ID_BYTES + MAC_BYTES) * 4) / 3;

const EXTENSIONS: ReadonlyMap<string, ImageMimeType> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["avif", "image/avif"],
  ["heic", "image/heic"],
]);
/** Matches only paths exactly as `create` writes them. Nothing is decoded, so no encoding can hide anything. */
const PATH = new RegExp(`^/relay/v1/([A-Za-z0-9_-]{${TOKEN_CHARS}})/picture\\.([a-z]{3,4})$`);

/** The first key signs and all keys verify, so a key can be replaced while older links are in use. */
export function createRelayTokens(keys: readonly [string, ...string[]]): RelayTokens {
  function sign(key: string, head: Uint8Array, mimeType: ImageMimeType): Buffer {
    return createHmac("sha256", key).update(`${PURPOSE}\n${mimeType}\n`).update(head).digest();
  }

  return {
    create(mimeType, expiresAt) {
      const head = Buffer.alloc(EXPIRY_BYTES + ID_BYTES);
      head.writeUIntBE(expiresAt, 0, EXPIRY_BYTES);
      randomBytes(ID_BYTES).copy(head, EXPIRY_BYTES);
      const token = Buffer.concat([head, sign(keys[0], head, mimeType)]).toString("base64url");
      const [extension = ""] = [...EXTENSIONS].find(([, type]) => type === mimeType) ?? [];
      return { id: head.toString("base64url", EXPIRY_BYTES), path: `/relay/v1/${token}/picture.${extension}` };
    },
    verify(path, nowSeconds) {
      const [, token = "", extension = ""] = PATH.exec(path) ?? [];
      const mimeType = EXTENSIONS.get(extension);
      if (mimeType === undefined) return undefined;
      const bytes = Buffer.from(token, "base64url");
      const head = bytes.subarray(0, EXPIRY_BYTES + ID_BYTES);
      const mac = bytes.subarray(EXPIRY_BYTES + ID_BYTES);
      const isSigned = keys.map((key) => timingSafeEqual(sign(key, head, mimeType), mac)).includes(true);
      const expiresAt = head.readUIntBE(0, EXPIRY_BYTES);
      if (!isSigned || expiresAt <= nowSeconds) return undefined;
      return { id: head.toString("base64url", EXPIRY_BYTES), mimeType, expiresAt };
    },
  };
}
