import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
/** The length that NIST SP 800-38D recommends for GCM. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts text: no one can read or change it without the key. Unrelated to `SinkErrorKind` `sealed`. */
export interface Seal {
  /** Encrypts a text, with a different result every time. The result can be opened only under the same name. */
  close(name: string, text: string): string;
  /** Throws if the key or the name differs, or if the text was changed. */
  open(name: string, sealed: string): string;
}

/** Throws if the key does not have 32 bytes. */
export function createSeal(key: Uint8Array): Seal {
  if (key.length !== KEY_BYTES)
    throw new TypeError(`The encryption key has ${key.length} bytes; ${KEY_BYTES} are needed.`);

  return {
    close(name, text) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(name));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    open(name, sealed) {
      const bytes = Buffer.from(sealed, "base64url");
      const tagEnd = NONCE_BYTES + TAG_BYTES;
      const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(NONCE_BYTES, tagEnd));
      return decipher.update(bytes.subarray(tagEnd), undefined, "utf8") + decipher.final("utf8");
    },
  };
}
