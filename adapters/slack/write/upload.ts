import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SinkError } from "../../../src/port/errors.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, Posted } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { toAttachments } from "../api/attachments.ts";
import type { Body } from "../api/wire.ts";
import { type ToMark, toFingerprint, toMessageId } from "../ids.ts";
import { type Block, isBlockRefusal, toMessageBody } from "./blocks.ts";
import { type FileStore, toFileName, type UploadedFile } from "./file-store.ts";
import type { Found, Lookup, ReplyPlace } from "./lookup.ts";
import type { PostAndUpdateWriter } from "./post-and-update.ts";
import type { Shared, SinkState } from "./sink-state.ts";

const MAX_FILES = 10;
/** Far below Slack's own limit, because files are held in memory. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_ALT_CHARS = 2_000;
/** The types that Slack shows inside a message. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif"]);
const BARE: Draft = { markdown: "", buttons: [], streaming: false };

/** Matches the made-up `ts` of a file's message where Slack does not tell the real one: calls for it find no message. */
const UNTOLD = /^0\./;
const MARK_CHARS = 8;

/** Brings files into a conversation: in one message with their words where Slack can do that, else in two. */
export interface Uploader {
  /** Rejects with a `SinkError` or a `SlackApiError`; after a time-out the message may still come. */
  upload(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  /**
   * The finished message of a delivery. Of an unfinished one the files are remembered, and the next upload goes on with
   * them.
   */
  find(request: UploadRequest, signal: AbortSignal): Promise<Found | undefined>;
}

export interface UploaderDeps {
  store: FileStore;
  postAndUpdate: PostAndUpdateWriter;
  lookup: Lookup;
  state: SinkState;
  toMark: ToMark;
}

export function createUploader(deps: UploaderDeps): Uploader {
  const { store, postAndUpdate, lookup, state, toMark } = deps;
  const share = createFileShare(deps);

  /** In the message itself, with words and buttons. Undefined where Slack takes no pictures there: none is shown then. */
  async function showInside(request: UploadRequest, signal: AbortSignal): Promise<Posted | undefined> {
    const { place, files } = request;
    const { teamId } = place;
    const stored: UploadedFile[] = [];
    for (const file of files) stored.push(await store.store(teamId, file, file.name, signal));
    // The files are finished first, and then shown.
    await store.complete(teamId, stored, {}, signal);
    const posted = (await areReady(teamId, stored, signal)) ? await postInside(request, stored, signal) : undefined;
    if (posted !== undefined) return posted;
    state.markUnsupported("pictures", teamId);
    // Finished without a place, a file cannot be given one any more.
    await store.drop(teamId, stored, signal);
    return undefined;
  }

  async function areReady(teamId: string, stored: readonly UploadedFile[], signal: AbortSignal): Promise<boolean> {
    for (const { id } of stored) {
      const look = await store.waitFor(teamId, id, ({ mimetype }) => mimetype || undefined, signal);
      if (look === "late") return false;
    }
    return true;
  }

  async function postInside(
    { place, caption = BARE, nonce }: UploadRequest,
    stored: readonly UploadedFile[],
    signal: AbortSignal,
  ): Promise<Posted | undefined> {
    const pictures: Block[] = stored.map(({ id, file }) => ({
      type: "image",
      slack_file: { id },
      alt_text: truncate(file.altText ?? file.name, MAX_ALT_CHARS),
    }));
    const messageFiles = { ids: stored.map(({ id }) => id) };
    for (const pauseMs of store.pollPausesMs) {
      try {
        return await postAndUpdate.post(place, caption, nonce, signal, { pictures, messageFiles });
      } catch (error) {
        // A picture is not ready to be shown, although Slack said that it was.
        if (!isBlockRefusal(error)) throw error;
        await sleep(pauseMs, undefined, { signal });
      }
    }
    return undefined;
  }

  async function bring(request: UploadRequest, signal: AbortSignal): Promise<Posted> {
    if (!arePictures(request)) return share.asFiles(request, signal);
    const mayStandInside = state.supports("pictures", request.place.teamId) && !share.isShared(request);
    const posted = mayStandInside ? await showInside(request, signal) : undefined;
    return posted ?? share.withWordsBehind(request, signal);
  }

  return {
    async upload(request, signal) {
      checkFiles(request.files);
      const posted = await bring(request, signal);
      const ids = state.files.get(posted.id)?.ids ?? [];
      return { ...posted, attachments: toRefs(request, ids) };
    },
    async find(request, signal) {
      const { place, caption, nonce, files } = request;
      const post = await lookup.findPost(place, nonce, signal, { isFinished: true });
      if (post !== undefined) return { ...post, files: toParts(request, post.fileIds) };
      const found = await lookup.findFiles(place, toMarkedNames(files, toMark(nonce)), signal);
      if (found === undefined) return undefined;
      share.noteShared(request, { fileIds: found.fileIds, ts: found.ts });
      const isWhole = !arePictures(request) || caption === undefined || !hasWords(caption);
      return isWhole ? { ...found, files: toParts(request, found.fileIds) } : undefined;
    },
  };
}

function arePictures({ files }: UploadRequest): boolean {
  return files.every(({ contentType }) => PICTURES.has(contentType));
}

/** Files under the names that they were given here. */
function toParts({ files }: UploadRequest, ids: readonly string[]): Array<{ id: string; name: string; size: number }> {
  return ids.flatMap((id, index) => {
    const file = files[index];
    return file === undefined ? [] : [{ id, name: file.name, size: file.bytes.length }];
  });
}

function toRefs(request: UploadRequest, ids: readonly string[]): AttachmentRef[] {
  return toAttachments(request.place, toParts(request, ids));
}

function checkFiles(files: readonly OutboundFile[]): void {
  if (files.length === 0 || files.length > MAX_FILES) {
    throw new SinkError("rejected", `${files.length} files; one to ${MAX_FILES} fit in a message.`);
  }
  const wrong = files.find(({ bytes }) => bytes.length === 0 || bytes.length > MAX_FILE_BYTES);
  if (wrong === undefined) return;
  const why = wrong.bytes.length === 0 ? "is empty" : "is over 50 MiB";
  throw new SinkError("rejected", `A file ${why}`, { quote: `: ${wrong.name}` });
}

/** Files to bring into a conversation, under a caption where there is one. */
export interface UploadRequest {
  place: ReplyPlace;
  files: readonly OutboundFile[];
  caption: Draft | undefined;
  nonce: string;
}

/**
 * Shares files the plain way: Slack itself makes the message that brings them, a little later. The same nonce shares
 * them once; words that are missing behind them are posted then.
 */
interface FileShare {
  /** Under the words, in one message. */
  asFiles(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  /** In a message of their own, with the words and the buttons in the next one. */
  withWordsBehind(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  /** True when files of this nonce are known to be shared. */
  isShared(request: UploadRequest): boolean;
  /** Takes note of files that were found shared. */
  noteShared(request: UploadRequest, shared: Shared): void;
}

interface FileShareDeps {
  store: FileStore;
  postAndUpdate: PostAndUpdateWriter;
  lookup: Pick<Lookup, "findFiles">;
  state: Pick<SinkState, "shares" | "files">;
  toMark: ToMark;
}

function createFileShare({ store, postAndUpdate, lookup, state, toMark }: FileShareDeps): FileShare {
  async function begin(request: UploadRequest, words: object, signal: AbortSignal) {
    const { place, files } = request;
    const { teamId, channelId, threadTs } = place;
    const names = toMarkedNames(files, toMark(request.nonce));
    const stored: UploadedFile[] = [];
    for (const [index, file] of files.entries()) {
      stored.push(await store.store(teamId, file, names[index] ?? file.name, signal));
    }
    const where = { channel_id: channelId, ...(threadTs !== undefined && { thread_ts: threadTs }) };
    await store.complete(teamId, stored, { ...where, ...words }, signal);
    const shared: Shared = { fileIds: stored.map(({ id }) => id), ts: undefined };
    // From here on it must not be done again, even if the rest fails.
    state.shares.set(toKey(request), shared);
    return shared;
  }

  /** Resolves to the message that shows the files; to undefined where Slack lets nobody look. */
  async function findTs({ place, files, nonce }: UploadRequest, shared: Shared, signal: AbortSignal) {
    const [first = ""] = shared.fileIds;
    const look = await store.waitFor(place.teamId, first, (file) => findShare(file, place.channelId), signal);
    if (look === "untold") return undefined;
    if (look !== "late") return look.found;
    const found = await lookup.findFiles(place, toMarkedNames(files, toMark(nonce)), signal).catch(() => undefined);
    signal.throwIfAborted();
    if (found !== undefined) return found.ts;
    throw new SinkError("unavailable", "Slack has taken the file and does not show it yet.");
  }

  async function share(request: UploadRequest, words: object, signal: AbortSignal): Promise<Shared> {
    const known = state.shares.get(toKey(request)) ?? (await begin(request, words, signal));
    if (known.ts !== undefined) return known;
    const shared = { ...known, ts: (await findTs(request, known, signal)) ?? toUntoldTs(request) };
    state.shares.set(toKey(request), shared);
    return shared;
  }

  function toPosted(request: UploadRequest, { fileIds, ts = toUntoldTs(request) }: Shared): Posted {
    const { teamId, channelId } = request.place;
    const id = toMessageId({ teamId, channelId, ts });
    state.files.set(id, { ids: fileIds });
    return { id };
  }

  return {
    async asFiles(request, signal) {
      const { caption } = request;
      const words = caption === undefined ? {} : { blocks: toMessageBody(caption).blocks };
      return toPosted(request, await share(request, words, signal));
    },
    async withWordsBehind(request, signal) {
      const { place, caption, nonce } = request;
      const shared = await share(request, {}, signal);
      if (caption === undefined || !hasWords(caption)) return toPosted(request, shared);
      const { fileIds, ts } = shared;
      const messageFiles = { ids: fileIds, ...(ts !== undefined && !UNTOLD.test(ts) && { sharedTs: ts }) };
      return postAndUpdate.post(place, caption, nonce, signal, { messageFiles });
    },
    isShared: (request) => state.shares.get(toKey(request)) !== undefined,
    noteShared: (request, shared) => state.shares.set(toKey(request), shared),
  };
}

/** A different one for each delivery: the core finds the conversation of a message by its id. */
function toUntoldTs({ nonce }: UploadRequest): string {
  const number = createHash("sha256").update(nonce).digest().readUIntBE(0, 6);
  return `0.${String(number).padStart(15, "0")}`;
}

function toKey({ place: { teamId, channelId }, nonce }: UploadRequest): string {
  return `${teamId}:${channelId}:${toFingerprint(nonce)}`;
}

function hasWords({ markdown, buttons }: Draft): boolean {
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
function findShare(file: Body, channelId: string): string | undefined {
  const { public: open = {}, private: closed = {} } = (file["shares"] ?? {}) as Record<
    string,
    Record<string, Array<{ ts?: unknown }>>
  >;
  const ts = (open[channelId] ?? closed[channelId])?.at(-1)?.ts;
  return typeof ts === "string" ? ts : undefined;
}
