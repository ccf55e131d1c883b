import type { Author } from "./events.ts";

export interface Owned {
  author: Pick<Author, "id">;
  conversationId: string;
}

export function isSamePerson(author: Pick<Author, "id">, { author: owner }: Pick<Owned, "author">): boolean {
  return author.id === owner.id;
}
