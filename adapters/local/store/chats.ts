import type { ChatRow } from "../page/wire.ts";
import type { SqlRow, Tables } from "./tables.ts";

const TITLE_CHARS = 48;
const UNTITLED = "New chat";

/** The chats and their titles. Call all functions that change something inside a transaction. */
export interface ChatList {
  /** Undefined if the chat does not exist or was deleted. */
  find(id: string): ChatRow | undefined;
  /** Adds a chat, unless it exists or was deleted. */
  ensure(id: string, firstText: string, at: number): void;
  name(id: string, text: string): void;
  /** Removes the title of one chat or of all, because a title quotes a message. */
  clearTitle(id?: string): void;
  rename(id: string, title: string): void;
  /** Keeps a row without a title, so that every page learns of the deletion. */
  remove(id: string): void;
  /** Returns the chats changed after `seq`, oldest change first. */
  since(seq: number, limit: number): ChatRow[];
}

export function createChatList({ database, nextSeq }: Tables): ChatList {
  const columns = "id, seq, title, created_at, is_deleted";
  const one = database.prepare(`SELECT ${columns} FROM local_channels WHERE id = ?`);
  const insert = database.prepare("INSERT INTO local_channels (id, seq, title, created_at) VALUES (?, ?, ?, ?)");
  const rename = database.prepare("UPDATE local_channels SET seq = ?, title = ? WHERE id = ?");
  const remove = database.prepare("UPDATE local_channels SET seq = ?, title = '', is_deleted = 1 WHERE id = ?");
  const ids = database.prepare("SELECT id FROM local_channels WHERE is_deleted = 0");
  const since = database.prepare(`SELECT ${columns} FROM local_channels WHERE seq > ? ORDER BY seq LIMIT ?`);

  return {
    find(id) {
      const row = one.get(id);
      return row === undefined || row["is_deleted"] === 1 ? undefined : toChat(row);
    },
    ensure(id, firstText, at) {
      if (one.get(id) === undefined) insert.run(id, nextSeq(), toTitle(firstText), at);
    },
    name(id, text) {
      const title = toTitle(text);
      if (one.get(id)?.["title"] === UNTITLED && title !== UNTITLED) rename.run(nextSeq(), title, id);
    },
    clearTitle(id) {
      for (const each of id === undefined ? ids.all().map((row) => String(row["id"])) : [id]) {
        rename.run(nextSeq(), UNTITLED, each);
      }
    },
    rename: (id, title) => void rename.run(nextSeq(), title, id),
    remove: (id) => void remove.run(nextSeq(), id),
    since: (seq, limit) => since.all(seq, limit).map(toChat),
  };
}

/** Matches Markdown, but not the signs in `C# > my_name` and `2 * 3`. */
const MARKS = /^[\s#>]+|`+|[*~]+(?=\S)|(?<=\S)[*~]+|(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu;

/** The first line of a text, without Markdown, truncated after a word. */
export function toTitle(text: string): string {
  const line = text
    .split("\n")
    .map((each) => each.replace(MARKS, "").trim())
    .find((each) => each !== "");
  if (line === undefined) return UNTITLED;
  const letters = Array.from(line);
  if (letters.length <= TITLE_CHARS) return line;
  const cut = letters.slice(0, TITLE_CHARS).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > TITLE_CHARS / 2 ? cut.slice(0, space) : cut}…`;
}

function toChat(row: SqlRow): ChatRow {
  return {
    type: "chat",
    id: String(row["id"]),
    seq: Number(row["seq"]),
    title: String(row["title"]),
    createdAt: Number(row["created_at"]),
    isDeleted: row["is_deleted"] === 1,
  };
}
