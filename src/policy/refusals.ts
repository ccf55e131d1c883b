import { createHash } from "node:crypto";
import type { InboundEvent } from "../port/events.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import type { Permission } from "./rules.ts";

/** A person is told once in this time, in one place, that they lack one permission. */
const SILENT_MS = 10 * 60_000;

/** Keeps those who try again and again from being told again and again. */
export interface Refusals {
  /** Resolves to whether the person is to be told now. The same event may be told again. Rejects when the store does not answer. */
  claim(event: Pick<InboundEvent, "key" | "author" | "reply">, permission: Permission): Promise<boolean>;
}

export function createRefusals({ open, inTurn }: Pick<Stores, "open" | "inTurn">): Refusals {
  const keyv = open("refused");

  return {
    claim({ key: eventKey, author, reply }, permission) {
      const { platform, workspaceId = "", channelId } = reply;
      // Names nobody: it lasts longer than an erasure takes.
      const key = toKeyPart(
        createHash("sha256")
          .update(JSON.stringify([platform, author.id, workspaceId, channelId, permission]))
          .digest("base64url"),
      );
      return inTurn(`refused:${key}`, async () => {
        const told: unknown = await keyv.get(key);
        if (told === undefined) await keyv.set(key, eventKey, SILENT_MS);
        return told === undefined || told === eventKey;
      });
    },
  };
}
