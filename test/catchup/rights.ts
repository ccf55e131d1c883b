import { silent } from "../../lab/support/log.ts";
import { isStillOpen, readMissed } from "../../src/catchup/missed.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { alone, WORD } from "../search/rights.ts";

/** The expectations of one row in a table of rights. */
export interface Expected {
  which: "here" | "all";
  /** The names of the channels and threads whose messages are summarised; undefined: the bot throws the summary away. */
  sees?: readonly string[];
}

/** Reads a day for a person by a real adapter. `during` happens after the first channel is read, `afterwards` at the end. */
export async function catchUpAll(
  adapter: Adapter,
  event: InboundEvent,
  which: "here" | "all",
  { during, afterwards }: { during?(): unknown; afterwards?(): unknown } = {},
): Promise<Expected["sees"]> {
  const { signal } = new AbortController();
  const by = alone({ author: event.author, reply: event.reply });
  const readRecent: Adapter["readRecent"] = async (...given) => {
    const recent = await adapter.readRecent?.(...given);
    during?.();
    return recent ?? { messages: [], gaps: [] };
  };
  const deps = { adapterOf: () => ({ ...adapter, readRecent }), log: silent };
  const asker = { by, until: event.at + 60_000, mayAsk: () => true };
  const missed = await readMissed(deps, { which, since: event.at - 86_400_000 }, asker, signal);
  afterwards?.();
  if (typeof missed === "string") return [];
  if (!(await isStillOpen(deps, missed, by, signal))) return undefined;
  return missed.messages.flatMap(({ text }) => (text.startsWith(WORD) ? [text.split(" ")[1] ?? ""] : [])).toSorted();
}
