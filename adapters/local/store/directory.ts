import { randomUUID } from "node:crypto";
import type { Author } from "../../../src/port/events.ts";
import { RequestError } from "../errors.ts";
import type { ChannelKind, ChannelRow, PersonRow } from "../page/wire.ts";
import type { SqlRow, Tables } from "./tables.ts";

const TITLE_CHARS = 48;
/** The title of a chat before anybody said anything in it that could name it. */
const UNTITLED = "New chat";

/** The people one can speak as, and the places one can speak in. */
export interface Directory {
  people(): PersonRow[];
  person(id: string): PersonRow | undefined;
  /** Undefined when somebody already has that name. */
  addPerson(name: string): PersonRow | undefined;
  /** Undefined also for a deleted one. */
  channel(id: string): ChannelRow | undefined;
  /** Undefined when a channel of that name exists. */
  addChannel(title: string, at: number): ChannelRow | undefined;
  /** Makes a chat if it was never there. Call it inside a transaction. */
  ensureChat(id: string, firstText: string, at: number): void;
  /** Gives a chat without a title one that says what this text is about. Call it inside a transaction. */
  nameChat(id: string, text: string): void;
  /** Takes away a title, which quotes a message. Call it inside a transaction. */
  clearTitle(id: string): void;
  /** Call it inside a transaction. */
  rename(id: string, title: string): void;
  /** Leaves a row without a title, so that every page learns of it. Call it inside a transaction. */
  removeChannel(id: string): void;
  peopleSince(seq: number, limit: number): PersonRow[];
  channelsSince(seq: number, limit: number): ChannelRow[];
}

export function createDirectory(tables: Tables): Directory {
  return { ...createPeople(tables), ...createChannels(tables) };
}

type People = Pick<Directory, "people" | "person" | "addPerson" | "peopleSince">;

function createPeople({ database, nextSeq, inTransaction }: Tables): People {
  const all = database.prepare("SELECT id, seq, name FROM local_people ORDER BY rowid");
  const one = database.prepare("SELECT id, seq, name FROM local_people WHERE id = ?");
  const named = database.prepare("SELECT 1 FROM local_people WHERE name = ?");
  const insert = database.prepare("INSERT INTO local_people (id, seq, name) VALUES (?, ?, ?)");
  const since = database.prepare("SELECT id, seq, name FROM local_people WHERE seq > ? ORDER BY seq LIMIT ?");

  return {
    people: () => all.all().map(toPerson),
    person(id) {
      const row = one.get(id);
      return row === undefined ? undefined : toPerson(row);
    },
    addPerson: (name) =>
      inTransaction(() => {
        if (named.get(name) !== undefined) return undefined;
        const person: PersonRow = { type: "person", id: randomUUID(), seq: nextSeq(), name };
        insert.run(person.id, person.seq, name);
        return person;
      }),
    peopleSince: (seq, limit) => since.all(seq, limit).map(toPerson),
  };
}

type Channels = Omit<Directory, keyof People>;

function createChannels({ database, nextSeq, inTransaction }: Tables): Channels {
  const columns = "id, seq, kind, title, created_at, is_deleted";
  const one = database.prepare(`SELECT ${columns} FROM local_channels WHERE id = ?`);
  const titled = database.prepare("SELECT 1 FROM local_channels WHERE kind = 'channel' AND title = ?");
  const insert = database.prepare(
    "INSERT OR IGNORE INTO local_channels (id, seq, kind, title, created_at) VALUES (?, ?, ?, ?, ?)",
  );
  const rename = database.prepare("UPDATE local_channels SET seq = ?, title = ? WHERE id = ?");
  const remove = database.prepare("UPDATE local_channels SET seq = ?, title = '', is_deleted = 1 WHERE id = ?");
  const since = database.prepare(`SELECT ${columns} FROM local_channels WHERE seq > ? ORDER BY seq LIMIT ?`);

  return {
    channel(id) {
      const row = one.get(id);
      return row === undefined || row["is_deleted"] === 1 ? undefined : toChannel(row);
    },
    addChannel: (title, at) =>
      inTransaction(() => {
        if (titled.get(title) !== undefined) return undefined;
        const id = `c-${randomUUID()}`;
        insert.run(id, nextSeq(), "channel", title, at);
        return toChannel(one.get(id) ?? {});
      }),
    ensureChat(id, firstText, at) {
      if (one.get(id) === undefined) insert.run(id, nextSeq(), "chat", toTitle(firstText), at);
    },
    nameChat(id, text) {
      const row = one.get(id);
      const title = toTitle(text);
      if (row?.["kind"] === "chat" && row["title"] === UNTITLED && title !== UNTITLED) rename.run(nextSeq(), title, id);
    },
    clearTitle: (id) => void rename.run(nextSeq(), UNTITLED, id),
    rename: (id, title) => void rename.run(nextSeq(), title, id),
    removeChannel: (id) => void remove.run(nextSeq(), id),
    channelsSince: (seq, limit) => since.all(seq, limit).map(toChannel),
  };
}

/** The person who acts at the page. Throws a `RequestError` where there is none of that id. */
export function findAuthor({ person }: Pick<Directory, "person">, id: string): Author {
  const found = person(id);
  if (found === undefined) throw new RequestError(400, "That person does not exist; choose whom you speak as.");
  return { id: found.id, name: found.name };
}

/** Marks of Markdown where they are marks: `C# > my_name` and `2 * 3` have none. */
const MARKS = /^[\s#>]+|`+|[*~]+(?=\S)|(?<=\S)[*~]+|(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu;

/** First line of a text, without Markdown's marks, cut at a word. */
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

function toPerson(row: SqlRow): PersonRow {
  return { type: "person", id: String(row["id"]), seq: Number(row["seq"]), name: String(row["name"]) };
}

function toChannel(row: SqlRow): ChannelRow {
  return {
    type: "channel",
    id: String(row["id"]),
    seq: Number(row["seq"]),
    kind: row["kind"] as ChannelKind,
    title: String(row["title"]),
    createdAt: Number(row["created_at"]),
    isDeleted: row["is_deleted"] === 1,
  };
}
