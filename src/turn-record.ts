import { createHash } from "node:crypto";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import type { Author, ReplyAddress } from "./adapter.ts";

/**
 * What must survive a crash in the middle of a turn, and what its buttons need afterwards: where the
 * reply stands and whose it is. No text.
 */
export interface TurnRecord {
  v: 1;
  id: string;
  conversationId: string;
  reply: ReplyAddress;
  /** Who asked; may press the reply's buttons. */
  author: Author;
  /** The messages that are answered together. */
  messageIds: string[];
  /** Messages of the reply, in order. */
  posted: string[];
  phase: "received" | "posted" | "final";
  /** How often the turn was begun without reaching its end. */
  attempts: number;
}

export interface TurnRecords {
  load(id: string): Promise<TurnRecord | undefined>;
  /** Resolves also when the store failed for good, which is logged: a turn does not end because its record could not be kept. */
  save(record: TurnRecord): Promise<void>;
  /** Erases a record; resolves also when there is none. */
  erase(id: string): Promise<void>;
}

const SAVE_PAUSES_MS = [0, 200, 1_000];

export function createTurnRecords({ keyv, ttlMs, log }: { keyv: Keyv; ttlMs: number; log: Logger }): TurnRecords {
  return {
    async load(id) {
      const record: unknown = await keyv.get(id);
      return isTurnRecord(record) ? record : undefined;
    },
    async save(record) {
      for (const pauseMs of SAVE_PAUSES_MS) {
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        try {
          await keyv.set(record.id, record, ttlMs);
          return;
        } catch (error) {
          log.warn({ err: error, turnId: record.id }, "the record of a turn could not be stored");
        }
      }
    },
    async erase(id) {
      await keyv.delete(id);
    },
  };
}

/** The turn that a batch of events begins: the same for the same first event, so that a turn taken up again finds its record. */
export function toTurnId(eventKey: string): string {
  return createHash("sha256").update(eventKey).digest("base64url").slice(0, 16);
}

function isTurnRecord(value: unknown): value is TurnRecord {
  return typeof value === "object" && value !== null && "v" in value && value.v === 1;
}
