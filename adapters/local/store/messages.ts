import { describeStep, foldSteps } from "../../../src/port/steps.ts";
import { PERSON } from "../ids.ts";
import type { Button, FileRow, ImagineOptions, Judgement, MessageRow, Step } from "../page/wire.ts";
import { isShownType } from "./files.ts";
import type { SqlRow, Tables } from "./tables.ts";

export interface MessageInput {
  /** Unique among all messages. A second insert with the same nonce changes nothing. */
  nonce: string;
  chatId: string;
  /** True if the bot wrote it, false if the person did. */
  isBot: boolean;
  replyTo: number | null;
  visibleTo: string | null;
  text: string;
  isCommand: boolean;
  options: ImagineOptions;
  buttons: Button[];
  steps: readonly Step[];
  isStreaming: boolean;
  /** True if the message is stored but not shown yet. */
  isHidden: boolean;
  at: number;
}

export interface Inserted {
  id: number;
  /** False if the nonce was used before. */
  isFresh: boolean;
}

/** The person's and the bot's messages. Call all functions that change something inside a transaction. */
export interface Messages {
  /** Returns the message with this nonce: the existing one or the new one. */
  insert(input: MessageInput): Inserted;
  find(id: number): MessageRow | undefined;
  findByNonce(nonce: string): MessageRow | undefined;
  isHidden(id: number): boolean;
  show(id: number): void;
  edit(id: number, text: string, editedAt: number): void;
  /** Replaces the content of a bot message without marking it as edited. */
  redraw(id: number, look: Pick<MessageInput, "text" | "buttons" | "steps" | "isStreaming">): void;
  /** Moves a message after everything that was written later in its chat. */
  moveToEnd(id: number): void;
  judge(id: number, judgement: Judgement): void;
  /** Keeps a row without content, so that every page learns of the deletion. */
  erase(id: number): void;
  all(): number[];
  /** The newest visible messages whose text contains all these words, in lower case. */
  containing(words: readonly string[], limit: number): MessageRow[];
  inChat(chatId: string): number[];
  /** The visible messages, without those that the person wrote at or after `at` (Unix milliseconds). */
  spokenIn(chatId: string, at: number): number[];
  /** Returns the messages changed after `seq`, oldest change first, without deletions up to `knownSince`. */
  since(seq: number, limit: number, knownSince: number): MessageRow[];
}

const COLUMNS = `m.id, m.seq, m.nonce, m.channel_id, m.author_id, m.reply_to, m.visible_to, m.text, m.is_command, m.options,
  m.buttons, m.steps, m.is_streaming, m.judgement, m.created_at, m.edited_at, m.moved_behind, m.is_deleted,
  (SELECT json_group_array(json_object('id', f.id, 'name', f.name, 'contentType', f.content_type,
    'sizeBytes', f.size_bytes, 'width', f.width, 'height', f.height,
    'altText', f.alt_text, 'isSpoiler', f.is_spoiler) ORDER BY f.position)
   FROM local_files f WHERE f.message_id = m.id) AS files`;

export function createMessages(tables: Tables): Messages {
  return { ...createReading(tables), ...createWriting(tables) };
}

type Reading = Pick<
  Messages,
  "find" | "findByNonce" | "isHidden" | "since" | "all" | "containing" | "inChat" | "spokenIn"
>;

function createReading({ database }: Tables): Reading {
  const byId = database.prepare(`SELECT ${COLUMNS} FROM local_messages m WHERE m.id = ?`);
  const byNonce = database.prepare(`SELECT ${COLUMNS} FROM local_messages m WHERE m.nonce = ?`);
  const hidden = database.prepare("SELECT is_hidden FROM local_messages WHERE id = ?");
  const since = database.prepare(`SELECT ${COLUMNS} FROM local_messages m
    WHERE m.seq > $seq AND m.is_hidden = 0 AND (m.is_deleted = 0 OR m.seq > $known)
    ORDER BY m.seq LIMIT $limit`);
  const all = database.prepare("SELECT id FROM local_messages WHERE is_deleted = 0");
  const newest = database.prepare(`SELECT ${COLUMNS} FROM local_messages m
    WHERE m.is_deleted = 0 AND m.is_hidden = 0 ORDER BY m.id DESC`);
  const inChat = database.prepare("SELECT id FROM local_messages WHERE channel_id = ? AND is_deleted = 0");
  const spoken = database.prepare(`SELECT id FROM local_messages
    WHERE channel_id = $chat AND is_deleted = 0 AND is_hidden = 0
      AND (author_id IS NULL OR created_at < $at)`);

  return {
    find: (id) => toMessageOrNone(byId.get(id)),
    findByNonce: (nonce) => toMessageOrNone(byNonce.get(nonce)),
    isHidden: (id) => hidden.get(id)?.["is_hidden"] === 1,
    since: (seq, limit, known) => since.all({ $seq: seq, $limit: limit, $known: known }).map(toMessage),
    inChat: (chatId) => inChat.all(chatId).map((row) => Number(row["id"])),
    containing(words, limit) {
      const found: MessageRow[] = [];
      for (const row of newest.iterate()) {
        // SQLite's own lower case knows only ASCII.
        const text = String(row["text"]).toLowerCase();
        if (words.every((word) => text.includes(word))) found.push(toMessage(row));
        if (found.length >= limit) break;
      }
      return found;
    },
    all: () => all.all().map((row) => Number(row["id"])),
    spokenIn: (chatId, at) => spoken.all({ $chat: chatId, $at: at }).map((row) => Number(row["id"])),
  };
}

type Writing = Omit<Messages, keyof Reading>;

function createWriting(tables: Tables): Writing {
  const { database, nextSeq } = tables;
  const idOf = database.prepare("SELECT id FROM local_messages WHERE nonce = ?");
  const insert = database.prepare(`INSERT INTO local_messages (seq, nonce, channel_id, author_id,
    reply_to, visible_to, text, is_command, options, buttons, steps, is_streaming, is_hidden, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const show = database.prepare("UPDATE local_messages SET seq = ?, is_hidden = 0 WHERE id = ? AND is_hidden = 1");
  const edit = database.prepare("UPDATE local_messages SET seq = ?, text = ?, edited_at = ? WHERE id = ?");
  // A new answer removes the rating of the previous one.
  const redraw =
    database.prepare(`UPDATE local_messages SET seq = $seq, text = $text, buttons = $buttons, steps = $steps,
    is_streaming = $streaming, judgement = iif($streaming = 1, NULL, judgement) WHERE id = $id AND is_deleted = 0`);
  const judge = database.prepare("UPDATE local_messages SET seq = ?, judgement = ? WHERE id = ? AND is_deleted = 0");
  const move = database.prepare(`UPDATE local_messages AS m SET seq = $seq, moved_behind = (SELECT max(o.id)
    FROM local_messages o WHERE o.channel_id = m.channel_id AND o.is_deleted = 0)
    WHERE m.id = $id`);
  const erase =
    database.prepare(`UPDATE local_messages SET seq = ?, text = '', options = '{}', buttons = '[]', steps = '[]',
    judgement = NULL, is_streaming = 0, is_hidden = 0, is_deleted = 1, author_id = NULL WHERE id = ? AND is_deleted = 0`);
  const eraseFiles = database.prepare("DELETE FROM local_files WHERE message_id = ?");

  return {
    insert(input) {
      const there = idOf.get(input.nonce);
      if (there !== undefined) return { id: Number(there["id"]), isFresh: false };
      const { lastInsertRowid } = insert.run(nextSeq(), ...toColumns(input));
      return { id: Number(lastInsertRowid), isFresh: true };
    },
    show: (id) => void show.run(nextSeq(), id),
    edit: (id, text, editedAt) => void edit.run(nextSeq(), text, editedAt, id),
    redraw(id, { text, buttons, steps, isStreaming }) {
      const look = { $text: text, $buttons: JSON.stringify(buttons), $steps: JSON.stringify(steps) };
      redraw.run({ $seq: nextSeq(), $id: id, $streaming: Number(isStreaming), ...look });
    },
    moveToEnd: (id) => void move.run({ $seq: nextSeq(), $id: id }),
    erase(id) {
      erase.run(nextSeq(), id);
      eraseFiles.run(id);
    },
    judge: (id, judgement) => void judge.run(nextSeq(), judgement, id),
  };
}

function toColumns(input: MessageInput): (string | number | null)[] {
  const { nonce, chatId, isBot, replyTo, visibleTo, text } = input;
  const told = [nonce, chatId, isBot ? null : PERSON.id, replyTo, visibleTo, text];
  const look = [
    Number(input.isCommand),
    JSON.stringify(input.options),
    JSON.stringify(input.buttons),
    JSON.stringify(input.steps),
  ];
  return [...told, ...look, Number(input.isStreaming), Number(input.isHidden), input.at];
}

function toMessageOrNone(row: SqlRow | undefined): MessageRow | undefined {
  return row === undefined ? undefined : toMessage(row);
}

function toMessage(row: SqlRow): MessageRow {
  const files = JSON.parse(String(row["files"])) as (Omit<FileRow, "isImage" | "isSpoiler"> & { isSpoiler: number })[];
  const nonce = String(row["nonce"]);
  const steps = JSON.parse(String(row["steps"])) as Step[];
  return {
    type: "message",
    id: Number(row["id"]),
    seq: Number(row["seq"]),
    chatId: String(row["channel_id"]),
    isBot: row["author_id"] === null,
    replyTo: toNumber(row["reply_to"]),
    nonce: nonce.startsWith("bot:") ? null : nonce,
    text: String(row["text"]),
    isCommand: row["is_command"] === 1,
    options: JSON.parse(String(row["options"])) as ImagineOptions,
    isAside: row["visible_to"] !== null,
    buttons: JSON.parse(String(row["buttons"])) as Button[],
    steps: steps.map((step) => ({ ...step, title: describeStep(step) })),
    stepsLine: toStepsLine(steps, row["is_streaming"] === 1),
    judgement: row["judgement"] as Judgement | null,
    isStreaming: row["is_streaming"] === 1,
    files: files.map((file) => ({
      ...file,
      isImage: isShownType(file.contentType),
      isSpoiler: file.isSpoiler === 1,
    })),
    createdAt: Number(row["created_at"]),
    editedAt: toNumber(row["edited_at"]),
    movedBehind: toNumber(row["moved_behind"]),
    isDeleted: row["is_deleted"] === 1,
  };
}

function toStepsLine(steps: readonly Step[], isStreaming: boolean): string {
  const running = isStreaming ? steps.findLast(({ state }) => state === "running") : undefined;
  if (running !== undefined) return `${describeStep(running)}…`;
  return steps.length === 0 ? "" : foldSteps(steps);
}

function toNumber(value: unknown): number | null {
  return value === null ? null : Number(value);
}
