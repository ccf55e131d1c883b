import { describeStep, foldSteps } from "../../../src/port/steps.ts";
import type { Button, FileRow, ImagineOptions, Judgement, MessageRow, Place, Step } from "../page/wire.ts";
import { isShownType } from "./files.ts";
import type { SqlRow, Tables } from "./tables.ts";

export interface MessageInput extends Place {
  /** Unique over all messages: a second insert with it changes nothing. */
  nonce: string;
  /** Null is the bot. */
  authorId: string | null;
  /** The person whose message an answer of the bot answers. */
  askedBy: string | null;
  /** The message that an answer of the bot answers. */
  replyTo: number | null;
  visibleTo: string | null;
  text: string;
  isCommand: boolean;
  options: ImagineOptions;
  buttons: Button[];
  /** Done on the way to an answer. */
  steps: readonly Step[];
  isStreaming: boolean;
  /** Stored, but not yet shown to anybody. */
  isHidden: boolean;
  at: number;
}

export interface Inserted {
  id: number;
  /** False when the nonce had been used before. */
  isFresh: boolean;
}

/** The messages of people and the bot. Every function that changes something belongs inside a transaction. */
export interface Messages {
  /** Returns the message with this nonce: the one that exists already, or the new one. */
  insert(input: MessageInput): Inserted;
  find(id: number): MessageRow | undefined;
  findByNonce(nonce: string): MessageRow | undefined;
  isHidden(id: number): boolean;
  show(id: number): void;
  edit(id: number, text: string, editedAt: number): void;
  /** Replaces the content of a message of the bot, without marking it as edited. */
  redraw(id: number, look: Pick<MessageInput, "text" | "buttons" | "steps" | "isStreaming">): void;
  /** Lets a message stand behind everything that was written in its place since. */
  moveToEnd(id: number): void;
  /** Notes somebody's judgement of an answer; the last one counts. */
  judge(id: number, authorId: string, judgement: Judgement): void;
  /** Takes back everything one person said of answers. */
  unjudge(authorId: string): void;
  /** Leaves a row without content, so that every page learns of it. */
  erase(id: number): void;
  /** Ids of the messages in one channel. */
  inChannel(channelId: string): number[];
  /** Ids of one person's messages, and of the bot's answers in their direct chats. */
  ownedBy(authorId: string): number[];
  /**
   * Ids of the messages at a place: those of one person and the answers to them, or all. Messages that people wrote at or
   * after `at`, Unix milliseconds, and hidden ones are left out. In a channel outside its threads, only commands and
   * their answers belong to the place.
   */
  spokenAt(place: Place, authorId: string | null, at: number): number[];
  /** Ids of the direct chats one person has written in. */
  chatsOf(authorId: string): string[];
  /**
   * In order of change. Messages that were deleted up to the change `knownSince` are left out, because the page has
   * never seen them, except where they have replies.
   */
  since(seq: number, limit: number, knownSince: number): MessageRow[];
}

const COLUMNS = `m.id, m.seq, m.nonce, m.channel_id, m.thread_id, m.author_id, m.reply_to, m.visible_to, m.text, m.is_command,
  m.options, m.buttons, m.steps, m.is_streaming, m.created_at, m.edited_at, m.moved_behind, m.is_deleted,
  (SELECT json_group_array(json_object('id', f.id, 'name', f.name, 'contentType', f.content_type,
    'sizeBytes', coalesce(f.size_bytes, length(f.bytes)), 'width', f.width, 'height', f.height,
    'altText', f.alt_text, 'isSpoiler', f.is_spoiler) ORDER BY f.position)
   FROM local_files f WHERE f.message_id = m.id) AS files,
  (SELECT json_group_object(j.author_id, j.judgement) FROM local_judgements j WHERE j.message_id = m.id) AS judgements`;

export function createMessages(tables: Tables): Messages {
  return { ...createReading(tables), ...createWriting(tables) };
}

type Reading = Pick<
  Messages,
  "find" | "findByNonce" | "isHidden" | "since" | "inChannel" | "ownedBy" | "spokenAt" | "chatsOf"
>;

function createReading({ database }: Tables): Reading {
  const byId = database.prepare(`SELECT ${COLUMNS} FROM local_messages m WHERE m.id = ?`);
  const byNonce = database.prepare(`SELECT ${COLUMNS} FROM local_messages m WHERE m.nonce = ?`);
  const hidden = database.prepare("SELECT is_hidden FROM local_messages WHERE id = ?");
  const since = database.prepare(`SELECT ${COLUMNS} FROM local_messages m
    WHERE m.seq > $seq AND m.is_hidden = 0 AND (m.is_deleted = 0 OR m.seq > $known
      OR EXISTS (SELECT 1 FROM local_messages r WHERE r.thread_id = m.id AND r.is_deleted = 0))
    ORDER BY m.seq LIMIT $limit`);
  const inChannel = database.prepare("SELECT id FROM local_messages WHERE channel_id = ? AND is_deleted = 0");
  const owned = database.prepare(`SELECT m.id FROM local_messages m JOIN local_channels c ON c.id = m.channel_id
    WHERE m.is_deleted = 0 AND (m.author_id = $author
      OR (m.author_id IS NULL AND m.asked_by = $author AND c.kind = 'chat'))`);
  const spoken = database.prepare(`SELECT m.id FROM local_messages m JOIN local_channels c ON c.id = m.channel_id
    WHERE m.channel_id = $channel AND m.is_deleted = 0 AND m.is_hidden = 0
      AND (m.author_id IS NULL OR m.created_at < $at)
      AND ($author IS NULL OR $author IN (m.author_id, m.asked_by))
      AND (c.kind = 'chat' OR $thread IN (m.thread_id, m.id)
        OR ($thread IS NULL AND m.thread_id IS NULL AND (m.author_id IS NULL OR m.is_command = 1)))`);
  const chats = database.prepare(`SELECT DISTINCT c.id FROM local_channels c
    JOIN local_messages m ON m.channel_id = c.id WHERE c.kind = 'chat' AND m.author_id = ?`);

  return {
    find: (id) => toMessageOrNone(byId.get(id)),
    findByNonce: (nonce) => toMessageOrNone(byNonce.get(nonce)),
    isHidden: (id) => hidden.get(id)?.["is_hidden"] === 1,
    since: (seq, limit, known) => since.all({ $seq: seq, $limit: limit, $known: known }).map(toMessage),
    inChannel: (channelId) => inChannel.all(channelId).map((row) => Number(row["id"])),
    ownedBy: (author) => owned.all({ $author: author }).map((row) => Number(row["id"])),
    spokenAt: ({ channelId, threadId }, author, at) =>
      spoken.all({ $channel: channelId, $thread: threadId, $author: author, $at: at }).map((row) => Number(row["id"])),
    chatsOf: (author) => chats.all(author).map((row) => String(row["id"])),
  };
}

type Writing = Omit<Messages, keyof Reading>;

function createWriting(tables: Tables): Writing {
  const { database, nextSeq } = tables;
  const idOf = database.prepare("SELECT id FROM local_messages WHERE nonce = ?");
  const insert = database.prepare(`INSERT INTO local_messages (seq, nonce, channel_id, thread_id, author_id, asked_by,
    reply_to, visible_to, text, is_command, options, buttons, steps, is_streaming, is_hidden, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const show = database.prepare("UPDATE local_messages SET seq = ?, is_hidden = 0 WHERE id = ? AND is_hidden = 1");
  const edit = database.prepare("UPDATE local_messages SET seq = ?, text = ?, edited_at = ? WHERE id = ?");
  const redraw = database.prepare(
    "UPDATE local_messages SET seq = ?, text = ?, buttons = ?, steps = ?, is_streaming = ? WHERE id = ? AND is_deleted = 0",
  );
  const move = database.prepare(`UPDATE local_messages AS m SET seq = $seq, moved_behind = (SELECT max(o.id)
    FROM local_messages o WHERE o.channel_id = m.channel_id AND o.thread_id IS m.thread_id AND o.is_deleted = 0)
    WHERE m.id = $id`);
  const erase =
    database.prepare(`UPDATE local_messages SET seq = ?, text = '', options = '{}', buttons = '[]', steps = '[]',
    is_streaming = 0, is_hidden = 0, is_deleted = 1, author_id = NULL, asked_by = NULL WHERE id = ? AND is_deleted = 0`);
  const eraseFiles = database.prepare("DELETE FROM local_files WHERE message_id = ?");
  const eraseJudgements = database.prepare("DELETE FROM local_judgements WHERE message_id = ?");

  return {
    ...createJudging(tables),
    insert(input) {
      const there = idOf.get(input.nonce);
      if (there !== undefined) return { id: Number(there["id"]), isFresh: false };
      const { lastInsertRowid } = insert.run(nextSeq(), ...toColumns(input));
      return { id: Number(lastInsertRowid), isFresh: true };
    },
    show: (id) => void show.run(nextSeq(), id),
    edit: (id, text, editedAt) => void edit.run(nextSeq(), text, editedAt, id),
    redraw(id, { text, buttons, steps, isStreaming }) {
      // A new answer is being written here: people judged the one before it.
      if (isStreaming) eraseJudgements.run(id);
      redraw.run(nextSeq(), text, JSON.stringify(buttons), JSON.stringify(steps), Number(isStreaming), id);
    },
    moveToEnd: (id) => void move.run({ $seq: nextSeq(), $id: id }),
    erase(id) {
      erase.run(nextSeq(), id);
      eraseFiles.run(id);
      eraseJudgements.run(id);
    },
  };
}

function createJudging({ database, nextSeq }: Tables): Pick<Messages, "judge" | "unjudge"> {
  const put = database.prepare(
    "INSERT OR REPLACE INTO local_judgements (message_id, author_id, judgement) VALUES (?, ?, ?)",
  );
  const drop = database.prepare("DELETE FROM local_judgements WHERE author_id = ? RETURNING message_id");
  const touch = database.prepare("UPDATE local_messages SET seq = ? WHERE id = ?");

  return {
    judge(id, authorId, judgement) {
      put.run(id, authorId, judgement);
      touch.run(nextSeq(), id);
    },
    unjudge(authorId) {
      for (const row of drop.all(authorId)) touch.run(nextSeq(), Number(row["message_id"]));
    },
  };
}

function toColumns(input: MessageInput): (string | number | null)[] {
  const { nonce, channelId, threadId, authorId, askedBy, replyTo, visibleTo, text } = input;
  const told = [nonce, channelId, threadId, authorId, askedBy, replyTo, visibleTo, text];
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
    channelId: String(row["channel_id"]),
    threadId: toNumber(row["thread_id"]),
    authorId: toText(row["author_id"]),
    replyTo: toNumber(row["reply_to"]),
    nonce: nonce.startsWith("bot:") ? null : nonce,
    text: String(row["text"]),
    isCommand: row["is_command"] === 1,
    options: JSON.parse(String(row["options"])) as ImagineOptions,
    visibleTo: toText(row["visible_to"]),
    buttons: JSON.parse(String(row["buttons"])) as Button[],
    steps: steps.map((step) => ({ ...step, title: describeStep(step) })),
    stepsLine: toStepsLine(steps, row["is_streaming"] === 1),
    judgements: JSON.parse(String(row["judgements"])) as Record<string, Judgement>,
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

function toText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
