import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { toUploadName } from "../../../src/media/upload-name.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, Posted } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { createSlackHosts, toAttachments } from "../api/files.ts";
import type { Body } from "../api/wire.ts";
import { type ToMark, toFingerprint, toMessageId } from "../ids.ts";
import { type Block, isBlockRefusal, toMessageBody } from "./draft.ts";
import type { Found, Lookup, ReplyPlace } from "./lookup.ts";
import type { PostAndUpdateWriter } from "./post-and-update.ts";
import type { Shared, SinkState } from "./sink-state.ts";

const MAX_FILES = 10;
/** Far below Slack's limit, because files are in memory. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_ALT_CHARS = 2_000;
/** The file types that Slack shows inside a message. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif"]);
const BARE: Draft = { markdown: "", buttons: [], streaming: false };

/** Matches an invented `ts`, used if Slack does not return the real one. Calls with it find no message. */
const INVENTED_TS = /^0\./;
const MARK_CHARS = 8;
const MAX_TOLD_ALT_CHARS = 1_000;
/** Pauses between checks of a file that Slack is still processing. After the last one, the bot gives up. */
const POLL_PAUSES_MS = [50, 150, 300, 600, 1_000, 1_500, 2_000, 2_500, 3_000] as const;
/** With these codes, Slack will never describe the file to the bot. It may still show the file. */
const UNREADABLE_CODES = new Set(["unknown_method", "missing_scope", "not_allowed_token_type", "no_permission"]);

/** Posts files to a conversation: in one message with their text if Slack can do that, or else in two messages. */
export interface Uploader {
  /** Rejects with a `SinkError` or an `ApiError`. After a timeout the message may still appear. */
  upload(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  /** Finds the finished message of an upload. Remembers the files of an unfinished one for the next upload. */
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

  /** Shows the files inside the message, with text and buttons. Resolves to undefined if Slack accepts no images. */
  async function showInside(request: UploadRequest, signal: AbortSignal): Promise<Posted | undefined> {
    const { place, files } = request;
    const { teamId } = place;
    const stored: UploadedFile[] = [];
    for (const file of files) stored.push(await store.store(teamId, file, file.name, signal));
    // Completes the files first, and shows them once Slack has processed them.
    await store.complete(teamId, stored, {}, signal);
    const posted = (await areReady(teamId, stored, signal)) ? await postInside(request, stored, signal) : undefined;
    if (posted !== undefined) return posted;
    state.markUnsupported("pictures", teamId);
    // Drops the files, because a file that was completed without a channel can no longer be added to one.
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
        // Retries: Slack sometimes refuses an image that it reported as ready.
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
    throw new SinkError("rejected", `A message can have 1 to ${MAX_FILES} files, not ${files.length}.`);
  }
  const wrong = files.find(({ bytes }) => bytes.length === 0 || bytes.length > MAX_FILE_BYTES);
  if (wrong === undefined) return;
  const why = wrong.bytes.length === 0 ? "is empty" : "is over 50 MiB";
  throw new SinkError("rejected", `A file ${why}`, { quote: `: ${wrong.name}` });
}

export interface UploadRequest {
  place: ReplyPlace;
  files: readonly OutboundFile[];
  caption: Draft | undefined;
  nonce: string;
}

/**
 * Shares files with Slack's ordinary method, where Slack creates the message a little later. Shares them once per
 * nonce, and then posts any missing text.
 */
interface FileShare {
  /** The files and the text above them are one message. */
  asFiles(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  /** The files are in a separate message, followed by one with the text and the buttons. */
  withWordsBehind(request: UploadRequest, signal: AbortSignal): Promise<Posted>;
  isShared(request: UploadRequest): boolean;
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
    // From here on, the files must not be shared again, even if a later step fails.
    state.shares.set(toKey(request), shared);
    return shared;
  }

  /** Resolves to the message that shows the files. Undefined if Slack does not let the bot see it. */
  async function findTs({ place, files, nonce }: UploadRequest, shared: Shared, signal: AbortSignal) {
    const [first = ""] = shared.fileIds;
    const look = await store.waitFor(place.teamId, first, (file) => findShare(file, place.channelId), signal);
    if (look === "unreadable") return undefined;
    if (look !== "late") return look.found;
    const found = await lookup.findFiles(place, toMarkedNames(files, toMark(nonce)), signal).catch(() => undefined);
    signal.throwIfAborted();
    if (found !== undefined) return found.ts;
    throw new SinkError("unavailable", "Slack accepted the file but does not show it yet.");
  }

  async function share(request: UploadRequest, words: object, signal: AbortSignal): Promise<Shared> {
    const known = state.shares.get(toKey(request)) ?? (await begin(request, words, signal));
    if (known.ts !== undefined) return known;
    const shared = { ...known, ts: (await findTs(request, known, signal)) ?? toInventedTs(request) };
    state.shares.set(toKey(request), shared);
    return shared;
  }

  function toPosted(request: UploadRequest, { fileIds, ts = toInventedTs(request) }: Shared): Posted {
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
      const messageFiles = { ids: fileIds, ...(ts !== undefined && !INVENTED_TS.test(ts) && { sharedTs: ts }) };
      return postAndUpdate.post(place, caption, nonce, signal, { messageFiles });
    },
    isShared: (request) => state.shares.get(toKey(request)) !== undefined,
    noteShared: (request, shared) => state.shares.set(toKey(request), shared),
  };
}

/** Different for each upload, because the core uses a message's id to find its conversation. */
function toInventedTs({ nonce }: UploadRequest): string {
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
 * Names by which the bot finds the files, because their message has no mark. People see the title instead. A name needs
 * both parts: equal words can ask for another file, and a new image has another size.
 */
export function toMarkedNames(files: readonly OutboundFile[], mark: string): string[] {
  const ending = mark.slice(0, MARK_CHARS);
  return files.map(({ name }) => toFileName(name).replace(/(\.[^.]*)?$/, (extension) => `-${ending}${extension}`));
}

/** Returns the timestamp of the message that shares a file in a channel. Undefined until Slack creates the message. */
function findShare(file: Body, channelId: string): string | undefined {
  const { public: open = {}, private: closed = {} } = (file["shares"] ?? {}) as Record<
    string,
    Record<string, Array<{ ts?: unknown }>>
  >;
  const ts = (open[channelId] ?? closed[channelId])?.at(-1)?.ts;
  return typeof ts === "string" ? ts : undefined;
}

export interface UploadedFile {
  id: string;
  file: OutboundFile;
}

/** `unreadable`: Slack does not let the bot read the file. `late`: the file was not ready in time. */
export type PollResult<T> = { found: T } | "unreadable" | "late";

export interface FileStore {
  readonly pollPausesMs: readonly number[];
  /** Uploads a file's bytes under a name. People do not see the file yet. */
  store(teamId: string, file: OutboundFile, name: string, signal: AbortSignal): Promise<UploadedFile>;
  /** Completes uploads, and shows them as `share` says or nowhere. A file can be completed only once. */
  complete(teamId: string, stored: readonly UploadedFile[], share: object, signal: AbortSignal): Promise<void>;
  /** Checks a file repeatedly until `read` finds the required state. */
  waitFor<T>(
    teamId: string,
    id: string,
    find: (file: Body) => T | undefined,
    signal: AbortSignal,
  ): Promise<PollResult<T>>;
  /** Deletes files that people have not seen. Ignores failures. */
  drop(teamId: string, stored: readonly UploadedFile[], signal: AbortSignal): Promise<void>;
}

export interface FileStoreDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  pollPausesMs?: readonly number[] | undefined;
}

export function createFileStore({ api, apiUrl, pollPausesMs = POLL_PAUSES_MS }: FileStoreDeps): FileStore {
  const hosts = createSlackHosts(apiUrl);

  return {
    pollPausesMs,
    async store(teamId, file, name, signal) {
      const announced = await api.call(
        teamId,
        "files.getUploadURLExternal",
        {
          filename: toFileName(name),
          length: file.bytes.length,
          // Slack's own client uses `alt_text`, which Slack ignores.
          // https://docs.slack.dev/reference/methods/files.getUploadURLExternal
          ...(file.altText !== undefined && { alt_txt: truncate(file.altText, MAX_TOLD_ALT_CHARS) }),
        },
        signal,
      );
      const address = String(announced["upload_url"]);
      // The URL alone authorizes the upload, so the request has no token.
      if (!hosts.isUpload(address)) {
        throw new SinkError("rejected", "Slack returned an upload address that is not its own.");
      }
      await send(address, file.bytes, signal);
      return { id: String(announced["file_id"]), file };
    },
    async complete(teamId, stored, share, signal) {
      const files = stored.map(({ id, file }) => ({ id, title: file.name }));
      await api.call(teamId, "files.completeUploadExternal", { files, ...share }, signal);
    },
    async waitFor(teamId, id, find, signal) {
      for (const pauseMs of pollPausesMs) {
        try {
          const { file } = await api.call(teamId, "files.info", { file: id }, signal);
          const found = find(file as Body);
          if (found !== undefined) return { found };
        } catch (error) {
          if (UNREADABLE_CODES.has(codeOf(error))) return "unreadable";
          // Slack may not return a file that it is still processing.
          if (codeOf(error) !== "file_not_found") throw error;
        }
        await sleep(pauseMs, undefined, { signal });
      }
      return "late";
    },
    async drop(teamId, stored, signal) {
      for (const { id } of stored) await api.call(teamId, "files.delete", { file: id }, signal).catch(() => {});
      signal.throwIfAborted();
    },
  };
}

function toFileName(name: string): string {
  return toUploadName(name, `"<>`);
}

async function send(url: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/octet-stream" };
  const method = "upload";
  try {
    const { statusCode: status, body } = await request(url, { method: "POST", headers, body: bytes, signal });
    await body.dump();
    if (status === 200) return;
    throw new ApiError(method, `Slack answered the ${method} of a file with ${status}.`, { code: "", status });
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
    throw new ApiError(method, `The ${method} of a file to Slack failed.`, { code: "", status: 0 });
  }
}
