import { readKeyPart, toKeyPart, toOwnerKey } from "./key-part.ts";
import type { Indexes, OwnedTexts } from "./sqlite.ts";

export interface Owner {
  platform: string;
  id: string;
}

/** An entry and everything that indexes it. It is erased with its owner and with its conversation. */
export interface OwnedEntry {
  key: string;
  value: unknown;
  /** Counts from this write. Required, except for a rewrite, which keeps the remaining time. */
  ttlMs?: number | undefined;
  /** The people whom the entry is about. Each write replaces all of them. */
  owner?: Owner | readonly Owner[] | undefined;
  conversation?: string | undefined;
  /** Writes only if the entry exists. An entry that was erased meanwhile stays erased. */
  isRewrite?: true | undefined;
  /** Starts a list that `append` extends. Replaces an existing list. */
  isList?: true | undefined;
}

/** Selects the entries of a person, of a conversation, or of both together. */
export type Belonging =
  | { owner: Owner; conversation?: string | undefined }
  | { owner?: undefined; conversation: string };

/** A namespace whose entries can belong to people and conversations. */
export interface OwnedEntries {
  /** Writes one entry. Resolves to false if it is a rewrite and the entry does not exist. */
  put(entry: OwnedEntry): Promise<boolean>;
  /**
   * Writes and removes everything in one step. If an entry to rewrite does not exist, changes nothing and resolves to
   * false.
   */
  write(entries: readonly OwnedEntry[], removed?: readonly string[]): Promise<boolean>;
  /**
   * Adds a value to a list in a single command. Does not check rights, so a process that lost the work can still add a
   * value, and readers must decide whose values count. Resolves to false if the list does not exist.
   */
  append(key: string, value: unknown): Promise<boolean>;
  /** Reads the values that were added to a list, oldest first. */
  readAppended(key: string): Promise<unknown[]>;
  /** Keys of a person's entries in this namespace. The one that expires last is at the end. Does not read values. */
  keysOf(owner: Owner): Promise<string[]>;
  /**
   * Reads the entries of a person or conversation in this namespace. The cost grows with their entries in the whole
   * store.
   */
  entriesOf(of: Belonging): AsyncIterable<[key: string, value: unknown]>;
  /**
   * Erases the entries of a person or conversation in this namespace, including those written meanwhile. Resolves to
   * their number.
   */
  eraseOf(of: Belonging): Promise<number>;
}

/** The same operations across all namespaces. */
export interface OwnedData {
  /** All entries of one owner with their namespace, which is the part of the key before the first colon. */
  entriesOf(owner: Owner): AsyncIterable<{ namespace: string; key: string; value: unknown }>;
  /** Erases everything about a person, in all conversations or in one. Resolves to the number of entries. */
  eraseOwner(owner: Owner, conversation?: string): Promise<number>;
  eraseConversation(conversation: string): Promise<number>;
  /** Ids of the conversations that start with `prefix` and have entries, or had some until recently. */
  conversations(prefix: string): AsyncIterable<string>;
  /** Ids of the people on a platform who have entries, or had some until recently. */
  owners(platform: string): Promise<Set<string>>;
}

export interface Texts {
  toText(value: unknown): string;
  toValue(namespace: string, text: string): unknown;
}

/** In the store, all keys of the namespace start with `prefix`. */
export function createOwnedEntries(store: OwnedTexts, namespace: string, prefix: string, texts: Texts): OwnedEntries {
  const write: OwnedEntries["write"] = (entries, removed = []) =>
    store.write(
      entries.map(({ key, value, ttlMs, owner, conversation, isRewrite, isList }) => {
        if (ttlMs === undefined && !isRewrite) throw new TypeError("An entry with an owner must expire.");
        const of = [
          ...(owner === undefined ? [] : [owner].flat()).map(({ platform, id }) => toOwnerKey(platform, id)),
          ...(conversation === undefined ? [] : [toConversationKey(conversation)]),
        ];
        return { key: prefix + key, value: texts.toText(value), ttl: ttlMs, of: [...new Set(of)], isRewrite, isList };
      }),
      removed.map((key) => prefix + key),
    );

  return {
    write,
    put: (entry) => write([entry]),
    append: (key, value) => store.append(prefix + key, texts.toText(value)),
    readAppended: async (key) => (await store.readAppended(prefix + key)).map((text) => texts.toValue(namespace, text)),
    async keysOf({ platform, id }) {
      return (await store.keysOf(toOwnerKey(platform, id), prefix)).map((key) => key.slice(prefix.length));
    },
    async *entriesOf(of) {
      for await (const [key, text] of store.readOf(toIndexes(of), prefix)) {
        yield [key.slice(prefix.length), texts.toValue(namespace, text)];
      }
    },
    eraseOf: (of) => store.eraseOf(toIndexes(of), prefix),
  };
}

/** In the store, all keys start with `root`. */
export function createOwnedData(store: OwnedTexts, root: string, texts: Texts): OwnedData {
  return {
    async *entriesOf(owner) {
      for await (const [name, text] of store.readOf(toIndexes({ owner }), root)) {
        const [namespace = ""] = name.slice(root.length).split(":", 1);
        const key = name.slice(root.length + namespace.length + 1);
        yield { namespace, key, value: texts.toValue(namespace, text) };
      }
    },
    eraseOwner: (owner, conversation) => store.eraseOf(toIndexes({ owner, conversation }), root),
    eraseConversation: (conversation) => store.eraseOf(toIndexes({ conversation }), root),
    async *conversations(prefix) {
      for await (const name of store.indexes(toConversationKey(prefix))) {
        const conversation = readKeyPart(name.slice(CONVERSATION.length));
        if (conversation?.startsWith(prefix)) yield conversation;
      }
    },
    async owners(platform) {
      const prefix = `by:${toKeyPart(platform)}:`;
      const ids = await Array.fromAsync(store.indexes(prefix), (name) => readKeyPart(name.slice(prefix.length)));
      return new Set(ids.filter((id) => id !== undefined));
    },
  };
}

const CONVERSATION = "in:";

/**
 * A conversation's index name. It starts with the id, unless the id is hashed, so a prefix of ids finds several
 * indexes.
 */
function toConversationKey(conversation: string): string {
  return CONVERSATION + toKeyPart(conversation);
}

function toIndexes({ owner, conversation }: Belonging): Indexes {
  const names = [
    ...(owner === undefined ? [] : [toOwnerKey(owner.platform, owner.id)]),
    ...(conversation === undefined ? [] : [toConversationKey(conversation)]),
  ];
  const [first = "", second] = names;
  return [first, second];
}
