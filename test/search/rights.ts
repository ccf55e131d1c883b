import type { Adapter } from "../../src/port/adapter.ts";
import type { Actor } from "../../src/port/catalogue.ts";
import { createSearchMessages } from "../../src/search/search.ts";

/** The expectations of one row in a table of rights. */
export interface Expected {
  /** The names of the places whose messages are shown. */
  sees: readonly string[];
  /** The number of messages that only the asker can open. Absent: none. */
  withheld?: number;
}

/** Every message of these tables contains this word, and then the name of its place. */
export const WORD = "rocket";

/** Searches all places for a person by a real adapter. */
export async function searchAll(adapter: Adapter, { author, reply }: Actor): Promise<Expected> {
  const search = createSearchMessages({ adapterOf: () => adapter });
  const { hits, withheld } = await search(WORD, 100, { author, reply }, new AbortController().signal);
  return { sees: hits.map(({ text }) => text.split(" ")[1] ?? "").toSorted(), withheld };
}

export function alone<A extends Actor>(by: A): A {
  return { ...by, reply: { ...by.reply, visibleTo: by.author.id } };
}
