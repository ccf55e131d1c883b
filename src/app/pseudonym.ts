import { createHmac } from "node:crypto";

/** 128 bits, enough that two people never share a pseudonym. */
const PSEUDONYM_BYTES = 16;

/** The `user` field of a request: a stable pseudonym, which only `secret` could lead back to the person. */
export function pseudonym(secret: string, platform: string, userId: string): string {
  // The pair goes in as JSON, so that no platform and id can be shifted against each other.
  const digest = createHmac("sha256", secret)
    .update(JSON.stringify([platform, userId]))
    .digest();
  return `u_${digest.subarray(0, PSEUDONYM_BYTES).toString("base64url")}`;
}
