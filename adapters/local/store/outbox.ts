import { waitWithin } from "../../../src/concurrency/deadlines.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import type { Judgement } from "../page/wire.ts";
import type { Directory } from "./directory.ts";
import type { Messages } from "./messages.ts";
import type { Tables } from "./tables.ts";

/** The change to the tables once the event belongs to the queue. */
export type OutboxChange =
  | { kind: "show"; messageId: number }
  | { kind: "edit"; messageId: number; text: string; at: number }
  | { kind: "erase"; messageId: number }
  | { kind: "judge"; messageId: number; authorId: string; judgement: Judgement }
  | { kind: "eraseChat"; channelId: string }
  | { kind: "none" };

/**
 * Hands events over without a gap: an event is noted here before it is offered, and the note is removed in the same
 * transaction that shows its effect. After a crash in between, the next start offers it again, and the event's key keeps
 * it from counting twice.
 */
export interface Outbox {
  /** Notes the event; a key that is noted already stays as it is. Call it inside a transaction. */
  note(event: InboundEvent, change: OutboxChange): void;
  has(key: string): boolean;
  /** Offers one noted event and applies its change. Rejects when it was not accepted within `boundMs`; the note stays. */
  deliver(key: string, accept: Accept, boundMs: number): Promise<void>;
  withdraw(key: string): void;
  /** Keys of everything noted, oldest first. */
  keys(): string[];
  /** Drops everything noted for one person. Call it inside a transaction. */
  forget(authorId: string): void;
}

export interface OutboxDeps {
  tables: Tables;
  directory: Pick<Directory, "removeChannel">;
  messages: Messages;
  changed: () => void;
}

export function createOutbox({ tables, directory, messages, changed }: OutboxDeps): Outbox {
  const { database, inTransaction } = tables;
  const insert = database.prepare(
    "INSERT OR IGNORE INTO local_outbox (key, author_id, event, change) VALUES (?, ?, ?, ?)",
  );
  const find = database.prepare("SELECT event, change FROM local_outbox WHERE key = ?");
  const remove = database.prepare("DELETE FROM local_outbox WHERE key = ?");
  const removeAuthor = database.prepare("DELETE FROM local_outbox WHERE author_id = ?");
  const all = database.prepare("SELECT key FROM local_outbox ORDER BY id");

  function apply(key: string, change: OutboxChange): void {
    inTransaction(() => {
      // Gone when it was forgotten or delivered twice at once: then its effect must not come back.
      if (remove.run(key).changes === 0) return;
      if (change.kind === "show") messages.show(change.messageId);
      if (change.kind === "edit") messages.edit(change.messageId, change.text, change.at);
      if (change.kind === "erase") messages.erase(change.messageId);
      if (change.kind === "judge") messages.judge(change.messageId, change.authorId, change.judgement);
      if (change.kind === "eraseChat") {
        for (const id of messages.inChannel(change.channelId)) messages.erase(id);
        directory.removeChannel(change.channelId);
      }
    });
    changed();
  }

  return {
    note: (event, change) => void insert.run(event.key, event.author.id, JSON.stringify(event), JSON.stringify(change)),
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
    forget: (authorId) => void removeAuthor.run(authorId),
  };
}
