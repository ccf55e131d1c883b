import type { Author } from "./events.ts";

/** An id under which things of a person are kept: the present one, or the one from before ids were unique. */
export interface KnownAs {
  id: string;
  /** Limits this to conversations whose ids begin like this; absent: everything that is kept under the id. */
  within?: string;
}

/** True when everything that is kept under an id is theirs, also what belongs to no conversation. */
export function isWhole({ within }: KnownAs): boolean {
  return within === undefined;
}

/** Something of a person, with the conversation it belongs to. */
export interface Owned {
  author: Pick<Author, "id">;
  conversationId: string;
}

/** All ids of a person, the present one first. */
export function idsOf({ id, former }: Pick<Author, "id" | "former">): KnownAs[] {
  return former === undefined ? [{ id }] : [{ id }, former];
}

export function isSamePerson(author: Author, { author: owner, conversationId }: Owned): boolean {
  return idsOf(author).some(({ id, within = "" }) => id === owner.id && conversationId.startsWith(within));
}
