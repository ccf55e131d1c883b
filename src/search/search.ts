import type { Adapter } from "../port/adapter.ts";
import type { Actor } from "../port/catalogue.ts";
import { SearchProblem } from "../port/errors.ts";
import type { SearchHit } from "../port/events.ts";

/** Most pages of one search, because platforms count each page as a request of the asker. */
const MAX_PAGES = 2;
const NO_SEARCH = "There is nothing to search here: this platform has no other messages.";

/** The hits that everyone who reads the answer can open. */
export interface FoundMessages {
  /** Best hits first. */
  hits: SearchHit[];
  /** The number of hits that the asker can read, but others who read the answer cannot. */
  withheld: number;
}

/** Searches for a person. Rejects with a `SearchProblem` if that is not possible. */
export type SearchMessages = (words: string, maxHits: number, by: Actor, signal: AbortSignal) => Promise<FoundMessages>;

export interface SearchDeps {
  adapterOf(platform: string): Pick<Adapter, "search" | "mayShow">;
}

/**
 * Searches with the platform's own search, and keeps the hits that everyone who reads the answer can open when the hits
 * arrive. If a model answers with them, people can lose that right before its answer ends. The search does not count a
 * hit that the asker cannot open either, because its existence is a secret.
 */
export function createSearchMessages({ adapterOf }: SearchDeps): SearchMessages {
  return async (words, maxHits, by, signal) => {
    const adapter = adapterOf(by.reply.platform);
    const { mayShow } = adapter;
    if (adapter.search === undefined || mayShow === undefined) throw new SearchProblem(NO_SEARCH);
    const found: FoundMessages = { hits: [], withheld: 0 };
    const shown = new Set([by.reply.replyToId]);
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const request = { words, ...(cursor !== undefined && { cursor }) };
      const { hits, next } = await adapter.search(request, by, signal);
      const rights = await readRights(hits, by, mayShow, signal);
      for (const hit of hits) {
        if (shown.has(hit.messageId)) continue;
        shown.add(hit.messageId);
        const right = rights.get(hit.placeId);
        if (right === "hidden") found.withheld++;
        if (right === "shown" && found.hits.length < maxHits) found.hits.push(hit);
      }
      cursor = next;
      if (cursor === undefined || found.hits.length >= maxHits) break;
    }
    return found;
  };
}

/** `shown`: everyone who reads the answer can open the place; `hidden`: only the asker can; `secret`: not even they. */
type PlaceRight = "shown" | "hidden" | "secret";

/** By the id of the place. */
async function readRights(
  hits: readonly SearchHit[],
  { author, reply }: Actor,
  mayShow: NonNullable<Adapter["mayShow"]>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PlaceRight>> {
  const alone = { author, reply: { ...reply, visibleTo: author.id } };
  const read = async (placeId: string): Promise<PlaceRight> => {
    if (await mayShow(placeId, { author, reply }, signal)) return "shown";
    return (await mayShow(placeId, alone, signal)) ? "hidden" : "secret";
  };
  const placeIds = [...new Set(hits.map(({ placeId }) => placeId))];
  const rights = await Promise.all(placeIds.map(read));
  return new Map(placeIds.map((id, index) => [id, rights[index] ?? "secret"]));
}
