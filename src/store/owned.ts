import { readKeyPart, toKeyPart, toOwnerKey } from "./key-part.ts";
import type { Indexes, OwnedTexts } from "./sqlite.ts";

export interface Owner {
  platform: string;
  id: string;
}

/** An entry with the indexes that find it. Erasing its owner or its conversation erases the entry. */
export interface OwnedEntry {
  key: string;
  value: unknown;
  /** The time to live from this write on. Required, except for a rewrite, which keeps the remaining time. */
  ttlMs?: number | undefined;
  /** The people whom the entry is about. Each write replaces all earlier owners. */
  owner?: Owner | readonly Owner[] | undefined;
  conversation?: string | undefined;
  /** Set if the write requires an existing entry, so that it does not restore an erased one. */
  isRewrite?: true | undefined;
  /** Set if the entry starts a list that `append` extends. It replaces an existing list. */
  isList?: true | undefined;
}

/** Selects the entries of a person, of a conversation, or of a person in a conversation. */
export type Belonging =
  | { owner: Owner; conversation?: string | undefined }
  | { owner?: undefined; conversation: string };

/** A namespace whose entries can belong to people and conversations. */
export interface OwnedEntries {
  /** Writes one entry. Resolves to false if this would rewrite an entry that does not exist. */
  put(entry: OwnedEntry): Promise<boolean>;
  /** Makes all changes in one step. If an entry to rewrite is missing, makes none and resolves to false. */
  write(entries: readonly OwnedEntry[], removed?: readonly string[]): Promise<boolean>;
  /**
   * Adds a value to a list with one command. Resolves to false if the list does not exist. Checks no right: a process
   * that lost the work can still add a value, so readers must decide whose values count.
   */
  append(key: string, value: unknown): Promise<boolean>;
  /** Reads the values that `append` added, oldest first. */
  readAppended(key: string): Promise<unknown[]>;
  /** Lists the keys of a person's entries in this namespace. The last key is that of the entry that expires last. */
  keysOf(owner: Owner): Promise<string[]>;
  /** Reads the entries in this namespace. The cost grows with the number of their owner's entries in all namespaces. */
  entriesOf(of: Belonging): AsyncIterable<[key: string, value: unknown]>;
  /** Erases the entries in this namespace, and those written during the erasure. Resolves to the number of entries. */
  eraseOf(of: Belonging): Promise<number>;
}

/** The same operations for all namespaces together. */
export interface OwnedData {
  /** Reads the owner's entries. An entry's namespace is the part of its key before the first colon. */
  entriesOf(owner: Owner): AsyncIterable<{ namespace: string; key: string; value: unknown }>;
  /** Erases everything about a person, everywhere or in one conversation. Resolves to the number of entries. */
  eraseOwner(owner: Owner, conversation?: string): Promise<number>;
  eraseConversation(conversation: string): Promise<number>;
  /** Lists conversations whose ids start with `prefix` and that have entries, or had entries until recently. */
  conversations(prefix: string): AsyncIterable<string>;
  /** Lists the people of a platform who have entries, or had entries until recently. */
  owners(platform: string): Promise<Set<string>>;
}

export interface Texts {
  toText(value: unknown): string;
  toValue(namespace: string, text: string): unknown;
}

/** All keys of the namespace start with `prefix` in the store. */
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

/** All keys start with `root` in the store. */
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

/** Names a conversation's index by its id, so that a prefix of ids finds several indexes. Long ids are hashed. */
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
