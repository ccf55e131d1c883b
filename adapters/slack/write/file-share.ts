import { createHash } from "node:crypto";
import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, OutboundFile, Posted } from "../../../src/port/sink.ts";
import type { SlackAnswer } from "../api/client.ts";
import { type ToMark, toFingerprint, toMessageId } from "../ids.ts";
import { toMessageBody } from "./blocks.ts";
import { type FileStore, type Stored, toFileName } from "./file-store.ts";
import type { Lookup, ReplyPlace } from "./lookup.ts";
import type { WholeWriter } from "./post-and-update.ts";
import type { Memory, Shared } from "./sink-state.ts";

/** Stands for the message that brought a file where nobody tells which it is: what is done to it finds nothing. */
const UNTOLD = /^0\./;
const MARK_CHARS = 8;

/** What is brought, and as what. */
export interface Delivery {
  place: ReplyPlace;
  files: readonly OutboundFile[];
  caption: Draft | undefined;
  nonce: string;
}

/**
 * Shares files the plain way: the message that brings them is made by Slack itself, a little later. The same nonce
 * shares them once; what stands behind is made up for.
 */
export interface FileShare {
  /** Under the words, in one message. */
  asFiles(delivery: Delivery, signal: AbortSignal): Promise<Posted>;
  /** In a message of their own, with the words and the buttons in one behind it. */
  withWordsBehind(delivery: Delivery, signal: AbortSignal): Promise<Posted>;
  /** Whether files of this nonce are known to be shared. */
  isShared(delivery: Delivery): boolean;
  /** Takes note of files that were found shared. */
  noteShared(delivery: Delivery, shared: Shared): void;
}

export interface FileShareDeps {
  store: FileStore;
  whole: WholeWriter;
  lookup: Pick<Lookup, "findFiles">;
  memory: Pick<Memory, "shares" | "files">;
  toMark: ToMark;
}

export function createFileShare({ store, whole, lookup, memory, toMark }: FileShareDeps): FileShare {
  async function begin(delivery: Delivery, words: object, signal: AbortSignal) {
    const { place, files } = delivery;
    const { teamId, channelId, threadTs } = place;
    const names = toMarkedNames(files, toMark(delivery.nonce));
    const stored: Stored[] = [];
    for (const [index, file] of files.entries()) {
      stored.push(await store.store(teamId, file, names[index] ?? file.name, signal));
    }
    const where = { channel_id: channelId, ...(threadTs !== undefined && { thread_ts: threadTs }) };
    await store.complete(teamId, stored, { ...where, ...words }, signal);
    const shared: Shared = { fileIds: stored.map(({ id }) => id), ts: undefined };
    // From here on it must not be done again, whatever the rest comes to.
    memory.shares.set(toKey(delivery), shared);
    return shared;
  }

  /** Where the files are shown; undefined where nobody tells. */
  async function findTs({ place, files, nonce }: Delivery, shared: Shared, signal: AbortSignal) {
    const [first = ""] = shared.fileIds;
    const look = await store.waitFor(place.teamId, first, (file) => findShare(file, place.channelId), signal);
    if (look === "untold") return undefined;
    if (look !== "late") return look.found;
    const found = await lookup.findFiles(place, toMarkedNames(files, toMark(nonce)), signal).catch(() => undefined);
    signal.throwIfAborted();
    if (found !== undefined) return found.ts;
    throw new SinkError("unavailable", "Slack has taken the file and does not show it yet.");
  }

  async function share(delivery: Delivery, words: object, signal: AbortSignal): Promise<Shared> {
    const known = memory.shares.get(toKey(delivery)) ?? (await begin(delivery, words, signal));
    if (known.ts !== undefined) return known;
    const shared = { ...known, ts: (await findTs(delivery, known, signal)) ?? toUntoldTs(delivery) };
    memory.shares.set(toKey(delivery), shared);
    return shared;
  }

  function toPosted(delivery: Delivery, { fileIds, ts = toUntoldTs(delivery) }: Shared): Posted {
    const { teamId, channelId } = delivery.place;
    const id = toMessageId({ teamId, channelId, ts });
    memory.files.set(id, { ids: fileIds });
    return { id };
  }

  return {
    async asFiles(delivery, signal) {
      const { caption } = delivery;
      const words = caption === undefined ? {} : { blocks: toMessageBody(caption).blocks };
      return toPosted(delivery, await share(delivery, words, signal));
    },
    async withWordsBehind(delivery, signal) {
      const { place, caption, nonce } = delivery;
      const shared = await share(delivery, {}, signal);
      if (caption === undefined || !hasWords(caption)) return toPosted(delivery, shared);
      const { fileIds, ts } = shared;
      const brought = { ids: fileIds, ...(ts !== undefined && !UNTOLD.test(ts) && { sharedTs: ts }) };
      const posted = await whole.post(place, caption, nonce, signal, { brought });
      memory.files.set(posted.id, brought);
      return posted;
    },
    isShared: (delivery) => memory.shares.get(toKey(delivery)) !== undefined,
    noteShared: (delivery, shared) => memory.shares.set(toKey(delivery), shared),
  };
}

/** Another one for each delivery: by its message, people are taken to the conversation that it belongs to. */
function toUntoldTs({ nonce }: Delivery): string {
  const number = createHash("sha256").update(nonce).digest().readUIntBE(0, 6);
  return `0.${String(number).padStart(15, "0")}`;
}

function toKey({ place: { teamId, channelId }, nonce }: Delivery): string {
  return `${teamId}:${channelId}:${toFingerprint(nonce)}`;
}

export function hasWords({ markdown, buttons }: Draft): boolean {
  return markdown.trim() !== "" || buttons.length > 0;
}

/**
 * The message that brings files carries no mark, so that their names do; people see the title, which has none. Neither
 * would tell alone: another file may be asked for in the same words, and a picture drawn again has another size.
 */
export function toMarkedNames(files: readonly OutboundFile[], mark: string): string[] {
  const ending = mark.slice(0, MARK_CHARS);
  return files.map(({ name }) => toFileName(name).replace(/(\.[^.]*)?$/, (extension) => `-${ending}${extension}`));
}

/** The message that brought a file into a channel; undefined until there is one. */
function findShare(file: SlackAnswer, channelId: string): string | undefined {
  const { public: open = {}, private: closed = {} } = (file["shares"] ?? {}) as Record<
    string,
    Record<string, Array<{ ts?: unknown }>>
  >;
  const ts = (open[channelId] ?? closed[channelId])?.at(-1)?.ts;
  return typeof ts === "string" ? ts : undefined;
}
