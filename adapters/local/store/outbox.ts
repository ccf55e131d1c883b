import { waitWithin } from "../../../src/concurrency/deadlines.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import type { Judgement } from "../page/wire.ts";
import type { ChatList } from "./chats.ts";
import type { Messages } from "./messages.ts";
import type { Tables } from "./tables.ts";

/** The change to the tables when the queue has accepted an event. */
export type OutboxChange =
  | { kind: "show"; messageId: number }
  | { kind: "edit"; messageId: number; text: string; at: number }
  | { kind: "erase"; messageId: number }
  | { kind: "judge"; messageId: number; judgement: Judgement }
  | { kind: "eraseChat"; chatId: string }
  | { kind: "none" };

/**
 * Passes on events without losing any: the event is noted, offered, and unnoted in the transaction that shows its
 * effect. After a crash in between, the next start offers it again, and its key keeps it from counting twice.
 */
export interface Outbox {
  /** Notes the event. If the event's key is already noted, keeps the older note. Call this inside a transaction. */
  note(event: InboundEvent, change: OutboxChange): void;
  has(key: string): boolean;
  /** Offers one noted event and applies its change. If not accepted within `boundMs`, rejects and keeps the note. */
  deliver(key: string, accept: Accept, boundMs: number): Promise<void>;
  withdraw(key: string): void;
  /** Oldest first. */
  keys(): string[];
  /** Deletes all notes. Call it inside a transaction. */
  clear(): void;
}

export interface OutboxDeps {
  tables: Tables;
  chats: Pick<ChatList, "remove">;
  messages: Messages;
  changed: () => void;
}

export function createOutbox({ tables, chats, messages, changed }: OutboxDeps): Outbox {
  const { database, inTransaction } = tables;
  const insert = database.prepare("INSERT OR IGNORE INTO local_outbox (key, event, change) VALUES (?, ?, ?)");
  const find = database.prepare("SELECT event, change FROM local_outbox WHERE key = ?");
  const remove = database.prepare("DELETE FROM local_outbox WHERE key = ?");
  const removeAll = database.prepare("DELETE FROM local_outbox");
  const all = database.prepare("SELECT key FROM local_outbox ORDER BY id");

  function apply(key: string, change: OutboxChange): void {
    inTransaction(() => {
      // The note is gone if the person erased it or if the event was delivered twice. The event must then change
      // nothing.
      if (remove.run(key).changes === 0) return;
      if (change.kind === "show") messages.show(change.messageId);
      if (change.kind === "edit") messages.edit(change.messageId, change.text, change.at);
      if (change.kind === "erase") messages.erase(change.messageId);
      if (change.kind === "judge") messages.judge(change.messageId, change.judgement);
      if (change.kind === "eraseChat") {
        for (const id of messages.inChat(change.chatId)) messages.erase(id);
        chats.remove(change.chatId);
      }
    });
    changed();
  }

  return {
    note: (event, change) => void insert.run(event.key, JSON.stringify(event), JSON.stringify(change)),
    has: (key) => find.get(key) !== undefined,
    async deliver(key, accept, boundMs) {
      const row = find.get(key);
      if (row === undefined) return;
      const event = JSON.parse(String(row["event"])) as InboundEvent;
      await waitWithin(boundMs, accept(event), `No answer from the queue within ${boundMs} ms.`);
      apply(key, JSON.parse(String(row["change"])) as OutboxChange);
    },
    withdraw: (key) => void remove.run(key),
    keys: () => all.all().map((row) => String(row["key"])),
    clear: () => void removeAll.run(),
  };
}
