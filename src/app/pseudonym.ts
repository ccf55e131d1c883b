import { createHmac } from "node:crypto";

/** 128 bits, enough that two people never share a pseudonym. */
const PSEUDONYM_BYTES = 16;

/** Returns the `user` field of a request: a stable pseudonym, which only `secret` can link to the person. */
export function pseudonym(secret: string, platform: string, userId: string): string {
  // Encode the pair as JSON, so that no other platform and id give the same text.
  const digest = createHmac("sha256", secret)
    .update(JSON.stringify([platform, userId]))
    .digest();
  return `u_${digest.subarray(0, PSEUDONYM_BYTES).toString("base64url")}`;
}
