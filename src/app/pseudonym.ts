import { createHmac } from "node:crypto";

/** 128 bits, enough that two people never share a pseudonym. */
const PSEUDONYM_BYTES = 16;

/**
 * Returns the `user` field of a request: a stable pseudonym. Only someone who knows `secret` can link it to the person.
 */
export function pseudonym(secret: string, platform: string, userId: string): string {
  // JSON separates the platform from the id, so different pairs never give the same text.
  const digest = createHmac("sha256", secret)
    .update(JSON.stringify([platform, userId]))
    .digest();
  return `u_${digest.subarray(0, PSEUDONYM_BYTES).toString("base64url")}`;
}
