import type { Said } from "./inbound.ts";

const MAX_KNOWN = 5_000;

/** What overtook its message: Slack delivers over several connections, and again what was not acknowledged. */
export interface KnownMessages {
  setEdited(messageId: string, said: Said): void;
  setDeleted(messageId: string): void;
  /** A message as it stands by what is known: itself, as it was edited since, or undefined once it was deleted. */
  latest(messageId: string, said: Said): Said | undefined;
}

/** Remembers edits and deletions of late. */
export function createKnownMessages(): KnownMessages {
  const known = new Map<string, Said | undefined>();

  function set(messageId: string, said: Said | undefined): void {
    known.delete(messageId);
    known.set(messageId, said);
    const [oldest] = known.keys();
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  }

  return {
    setEdited(messageId, said) {
      // Nothing comes back from a deletion.
      if (!known.has(messageId) || known.get(messageId) !== undefined) set(messageId, said);
    },
    setDeleted: (messageId) => set(messageId, undefined),
    latest: (messageId, said) => (known.has(messageId) ? known.get(messageId) : said),
  };
}
