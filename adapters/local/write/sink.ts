import { createEvenPacer, OWN_SURFACE_PACE } from "../../../src/pacing/even.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, ReplySink, SinkLimits } from "../../../src/port/sink.ts";
import { PLATFORM, toAttachments, toMessageId } from "../ids.ts";
import type { FileRow, MessageRow } from "../page/wire.ts";
import { isWorking } from "../page/working.ts";
import type { ChatList } from "../store/chats.ts";
import { type Files, MAX_FILE_BYTES, MAX_FILES, type PreparedFile, prepareFile } from "../store/files.ts";
import type { Inserted, Messages } from "../store/messages.ts";
import type { Tables } from "../store/tables.ts";
import type { EventStream } from "./event-stream.ts";

/** Lengths are in UTF-16 units, which a browser's text field counts. */
const LIMITS: SinkLimits = {
  maxLength: 4000,
  lengthOf: (text) => text.length,
  keptLength: 3400,
  maxFileBytes: MAX_FILE_BYTES,
};

const BARE: Draft = { markdown: "", buttons: [], streaming: false };

export interface SinkDeps {
  tables: Tables;
  chats: ChatList;
  messages: Messages;
  files: Files;
  eventStream: EventStream;
  now: () => number;
}

/** Writes the bot's messages to the tables. The event stream sends them to the pages. */
export function createSink(address: ReplyAddress, deps: SinkDeps): ReplySink {
  const { tables, messages, files, eventStream } = deps;
  const chatId = address.channelId;

  function write<T>(work: () => T): T {
    const result = asSinkError(() => tables.inTransaction(work));
    eventStream.changed();
    return result;
  }

  const insert = (draft: Draft, nonce: string) => insertDraft(address, draft, nonce, deps);

  return {
    limits: LIMITS,
    budget: { key: PLATFORM, createPacer: () => createEvenPacer(OWN_SURFACE_PACE) },
    traits: { steps: true, foldedQuotes: true, secondThoughts: true },
    async post(draft, nonce, signal) {
      signal.throwIfAborted();
      checkLength(draft.markdown);
      const { id } = write(() => insert(draft, nonce));
      eventStream.setProgress({ chatId, text: "", turnId: null });
      return { id: toMessageId(id) };
    },
    async edit(id, draft, signal) {
      signal.throwIfAborted();
      checkLength(draft.markdown);
      write(() => redraw(messages, getOwn(messages, id), draft));
      return {};
    },
    async upload(outbound, caption, nonce, signal) {
      signal.throwIfAborted();
      checkFiles(outbound);
      const prepared = await Promise.all(outbound.map((file) => prepareFile(file, signal)));
      const stored: string[] = [];
      let isSent = false;
      try {
        for (const file of prepared) stored.push((await storeFile(file, deps)).id);
        signal.throwIfAborted();
        const { id, isFresh } = write(() => {
          const message = insert(caption ?? BARE, nonce);
          if (message.isFresh) files.attach(stored, message.id);
          return message;
        });
        isSent = isFresh;
        return { id: toMessageId(id), attachments: toAttachments(messages.find(id)?.files ?? []) };
      } finally {
        if (!isSent) files.drop(stored);
      }
    },
    async remove(id, signal) {
      signal.throwIfAborted();
      write(() => {
        const found = findOwn(messages, id);
        if (found !== undefined) messages.erase(found.id);
      });
    },
    async markWaiting(id, isWaiting, signal) {
      signal.throwIfAborted();
      const messageId = toId(id);
      if (messageId !== null) eventStream.setWaiting(messageId, isWaiting);
      return true;
    },
    async progress(text, signal, stop) {
      signal.throwIfAborted();
      eventStream.setProgress({ chatId, text, turnId: stop?.turnId ?? null });
    },
  };
}

function insertDraft(address: ReplyAddress, draft: Draft, nonce: string, deps: SinkDeps): Inserted {
  const { channelId: chatId } = address;
  if (deps.chats.find(chatId) === undefined) throw new SinkError("gone", `There is no chat ${chatId}.`);
  const look = toLook(draft);
  const by = { isBot: true, replyTo: toId(address.replyToId), visibleTo: address.visibleTo ?? null };
  const rest = { isCommand: false, options: {}, isHidden: false, at: deps.now() };
  return deps.messages.insert({ nonce: `bot:${nonce}`, chatId, ...by, ...look, ...rest });
}

/** Moves a final status message below its images. */
function redraw(messages: Messages, before: MessageRow, draft: Draft): void {
  const look = toLook(draft);
  messages.redraw(before.id, look);
  const isOver = isWorking(before) && !isWorking(look);
  if (isOver) messages.moveToEnd(before.id);
}

function toLook({ markdown: text, buttons, steps = [], streaming: isStreaming }: Draft) {
  return { text, buttons, steps, isStreaming };
}

function getOwn(messages: Messages, id: string): MessageRow {
  const found = findOwn(messages, id);
  if (found === undefined) throw new SinkError("gone", `The message ${id} no longer exists.`);
  return found;
}

function findOwn(messages: Messages, id: string): MessageRow | undefined {
  const message = messages.find(toId(id) ?? 0);
  if (message === undefined || message.isDeleted) return undefined;
  if (!message.isBot) throw new SinkError("forbidden", `The message ${id} is not from the bot.`);
  return message;
}

function toId(messageId = ""): number | null {
  const id = Number(messageId.replace(/^local:/, ""));
  return Number.isSafeInteger(id) && id > 0 ? id : null;
}

function checkLength(markdown: string): void {
  const length = LIMITS.lengthOf(markdown);
  if (length <= LIMITS.maxLength) return;
  throw new SinkError("rejected", `The message has ${length} characters; at most ${LIMITS.maxLength} are allowed.`);
}

function checkFiles(files: readonly OutboundFile[]): void {
  if (files.length > MAX_FILES)
    throw new SinkError("rejected", `${files.length} files; a message can have at most ${MAX_FILES}.`);
  const large = files.find((file) => file.bytes.length > MAX_FILE_BYTES);
  if (large !== undefined) throw new SinkError("rejected", "A file is over 20 MiB", { quote: `: ${large.name}` });
}

function asSinkError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toSinkError(error);
  }
}

function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  return new SinkError("unavailable", "The database of the local page rejected the write.", { cause: error });
}

async function storeFile(file: PreparedFile, { files, now }: SinkDeps): Promise<FileRow> {
  try {
    return await files.add(file, now());
  } catch (error) {
    throw toSinkError(error);
  }
}
