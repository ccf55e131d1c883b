import type { Keyv } from "keyv";
import { createHistory } from "../../../src/history/history.ts";
import type { HistoryEntry } from "../../../src/history/record.ts";
import { turnsOver } from "../../support/turns.ts";
import { log, type MeasuredStore } from "./history-stores.ts";

/** A conversation of a fixed length, stored in one way. */
export interface StoredConversation {
  append(): Promise<void>;
  /** Removes the entries that `append` added, so that the conversation has its original length. */
  undo(): Promise<void>;
}

export type CreateConversation = (store: MeasuredStore, messages: number) => Promise<StoredConversation>;

const TTL_MS = 24 * 60 * 60 * 1_000;
const AT_MS = Date.now();
export const MESSAGE_CHARS = 800;
/** All ids have the same length, so that long conversations do not have longer ids. */
const ID_DIGITS = 6;

/** Palaver's way: a key for each message. */
async function createHistoryConversation(store: MeasuredStore, messages: number): Promise<StoredConversation> {
  const history = createHistory({ open: store.open, inTurn: turnsOver(store.open), ttlMs: TTL_MS, log, now: Date.now });
  const conversationId = toId(messages);
  await store.fill(async () => {
    for (let index = 0; index < messages; index++) await history.append(conversationId, toEntry(messages, index));
  });
  return {
    append: () => history.append(conversationId, toEntry(messages, messages)),
    undo: async () => void (await history.remove(toEntry(messages, messages).id)),
  };
}

/** The most common way: the whole conversation is one value. Each append reads, changes and writes this value. */
async function createArrayConversation(store: MeasuredStore, messages: number): Promise<StoredConversation> {
  const keyv: Keyv<HistoryEntry[]> = store.open("bench-array");
  const key = String(messages);
  const entries = Array.from({ length: messages }, (_, index) => toEntry(messages, index));
  const undo = () => store.fill(async () => void (await keyv.set(key, entries, TTL_MS)));
  await undo();
  return {
    async append() {
      const known = (await keyv.get(key)) ?? [];
      await keyv.set(key, [...known, toEntry(messages, messages)], TTL_MS);
    },
    undo,
  };
}

function toEntry(messages: number, index: number): HistoryEntry {
  const author = { platform: "bench", id: "U1", name: "Ada" };
  const content = `${toId(index)} `.padEnd(MESSAGE_CHARS, "what people say ");
  return { id: `${toId(messages)}-${toId(index)}`, at: AT_MS, author, messages: [{ role: "user", content }] };
}

function toId(number: number): string {
  return String(number).padStart(ID_DIGITS, "0");
}

/** The ways to store a conversation, by their names in the table. The table compares the others with the first way. */
export const SHAPES: ReadonlyMap<string, CreateConversation> = new Map([
  ["a key per message", createHistoryConversation],
  ["whole array", createArrayConversation],
]);
