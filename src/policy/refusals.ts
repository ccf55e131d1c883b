import { createHash } from "node:crypto";
import type { InboundEvent } from "../port/events.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import type { Permission } from "./rules.ts";

const NAMESPACE = "refused";
/** For each channel and missing permission, a person gets at most one notice in this time. */
const SILENT_MS = 10 * 60_000;

/** Limits how often people who keep trying get a notice. */
export interface Refusals {
  /**
   * Resolves to true if the person should get a notice now. Further calls for the same event resolve to the same value.
   * Rejects if the store is unavailable.
   */
  claim(event: Pick<InboundEvent, "key" | "author" | "reply">, permission: Permission): Promise<boolean>;
}

export function createRefusals({ inTurn }: Pick<Stores, "inTurn">): Refusals {
  return {
    claim({ key: eventKey, author, reply }, permission) {
      const { platform, workspaceId = "", channelId } = reply;
      // The key is hashed: it can outlive an erasure, and must not identify anyone.
      const key = toKeyPart(
        createHash("sha256")
          .update(JSON.stringify([platform, author.id, workspaceId, channelId, permission]))
          .digest("base64url"),
      );
      return inTurn(`refused:${key}`, async (open) => {
        const keyv = open(NAMESPACE);
        const notifiedFor: unknown = await keyv.get(key);
        if (notifiedFor === undefined) await keyv.set(key, eventKey, SILENT_MS);
        return notifiedFor === undefined || notifiedFor === eventKey;
      });
    },
  };
}
