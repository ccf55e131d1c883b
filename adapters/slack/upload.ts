import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import type { AttachmentRef, Draft, OutboundFile, Posted } from "../../src/adapter.ts";
import { SinkError } from "../../src/errors.ts";
import { codeOf, SlackApiError } from "./api/error.ts";
import type { SlackAnswer, SlackApi } from "./api.ts";
import { toAttachments } from "./attachments.ts";
import { type Block, toMessageBody } from "./blocks.ts";
import { toMessageId } from "./ids.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { WholeWriter } from "./whole.ts";

export const MAX_FILES = 10;
/** Far below what Slack takes: it is held in memory. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_ALT_CHARS = 2_000;
const NAME_CHARS = 100;
/** Pauses between the looks at a file that Slack still works on. After the last one it is given up. */
const LOOKS_MS = [50, 150, 300, 600, 1_000, 1_500, 2_000, 2_500, 3_000] as const;
/** What Slack shows inside a message. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif"]);
/** Refusals to tell of a file, which no waiting mends; it may be shown all the same. */
const UNTOLD_CODES = new Set(["unknown_method", "missing_scope", "not_allowed_token_type", "no_permission"]);
/** The message that brought a file, where nobody tells which it is: what is done to it finds nothing. */
const UNTOLD_TS = "0.000000";
const UPLOAD_HOST = /^(?:[\w-]+\.)*slack(?:-files)?\.com$/;

/** Brings files into a conversation as one message. */
export interface Uploader {
  /** Rejects with a `SinkError` or a `SlackApiError`; after a time-out the message may still come. */
  upload(
    place: ReplyPlace,
    files: readonly OutboundFile[],
    caption: Draft | undefined,
    nonce: string,
    signal: AbortSignal,
  ): Promise<Posted>;
}

export interface UploaderDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  whole: WholeWriter;
}

/** A file whose bytes are with Slack. */
interface Stored {
  id: string;
  file: OutboundFile;
}

export function createUploader({ api, apiUrl, whole }: UploaderDeps): Uploader {
  async function store(teamId: string, file: OutboundFile, signal: AbortSignal): Promise<Stored> {
    const announced = await api.call(
      teamId,
      "files.getUploadURLExternal",
      {
        filename: toFileName(file.name),
        length: file.bytes.length,
        ...(file.altText !== undefined && { alt_text: file.altText.slice(0, MAX_ALT_CHARS) }),
      },
      signal,
    );
    await send(checkHost(String(announced["upload_url"]), apiUrl), file.bytes, signal);
    return { id: String(announced["file_id"]), file };
  }

  function toTitles(stored: readonly Stored[]): object[] {
    return stored.map(({ id, file }) => ({ id, title: file.name }));
  }

  async function look(teamId: string, id: string, signal: AbortSignal): Promise<SlackAnswer> {
    const { file } = await api.call(teamId, "files.info", { file: id }, signal);
    return file as SlackAnswer;
  }

  /** Looks at a file until it is as wanted. Undefined where Slack does not let anybody look. */
  async function waitFor<T>(
    teamId: string,
    id: string,
    find: (file: SlackAnswer) => T | undefined,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    for (const pauseMs of LOOKS_MS) {
      try {
        const found = find(await look(teamId, id, signal));
        if (found !== undefined) return found;
      } catch (error) {
        if (UNTOLD_CODES.has(codeOf(error))) return undefined;
        throw error;
      }
      await sleep(pauseMs, undefined, { signal });
    }
    throw new SinkError("unavailable", "Slack has taken the file and does not show it yet.");
  }

  /** In the message itself, with words and buttons: the files are finished first, and then shown. */
  async function showInside(
    place: ReplyPlace,
    stored: readonly Stored[],
    caption: Draft,
    nonce: string,
    signal: AbortSignal,
  ): Promise<Posted> {
    const { teamId } = place;
    await api.call(teamId, "files.completeUploadExternal", { files: toTitles(stored) }, signal);
    for (const { id } of stored) await waitFor(teamId, id, ({ mimetype }) => mimetype || undefined, signal);
    const blocks: Block[] = stored.map(({ id, file }) => ({
      type: "image",
      slack_file: { id },
      alt_text: (file.altText ?? file.name).slice(0, MAX_ALT_CHARS),
    }));
    const [last = 0] = LOOKS_MS.slice(-1);
    for (const pauseMs of LOOKS_MS) {
      try {
        return await whole.post(place, caption, nonce, signal, blocks);
      } catch (error) {
        // Some picture of it is not ready to be shown, whatever was said of it.
        if (codeOf(error) !== "invalid_blocks" || pauseMs === last) throw error;
        await sleep(pauseMs, undefined, { signal });
      }
    }
    throw new SinkError("unavailable", "Slack does not show the pictures yet.");
  }

  /** As files under the words. The message that brings them comes by itself, a little later. */
  async function share(
    { teamId, channelId, threadTs }: ReplyPlace,
    stored: readonly Stored[],
    caption: Draft | undefined,
    signal: AbortSignal,
  ): Promise<Posted> {
    const args = {
      files: toTitles(stored),
      channel_id: channelId,
      ...(threadTs !== undefined && { thread_ts: threadTs }),
      ...(caption !== undefined && { blocks: toMessageBody(caption).blocks }),
    };
    await api.call(teamId, "files.completeUploadExternal", args, signal);
    const [first] = stored;
    if (first === undefined) throw new SinkError("rejected", "There is no file to bring.");
    const ts = await waitFor(teamId, first.id, (file) => findShare(file, channelId), signal);
    return { id: toMessageId({ teamId, channelId, ts: ts ?? UNTOLD_TS }) };
  }

  return {
    async upload(place, files, caption, nonce, signal) {
      checkFiles(files);
      const stored: Stored[] = [];
      for (const file of files) stored.push(await store(place.teamId, file, signal));
      const isPictures = files.every(({ contentType }) => PICTURES.has(contentType));
      const posted = isPictures
        ? await showInside(place, stored, caption ?? BARE, nonce, signal)
        : await share(place, stored, caption, signal);
      return { ...posted, attachments: toRefs(place.teamId, stored) };
    },
  };
}

function toFileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const letters = Array.from(last.replace(/[\p{Cc}\p{Cf}\p{Cs}"<>]+/gu, "").trim());
  return letters.length === 0 ? "file" : letters.slice(-NAME_CHARS).join("");
}

const BARE: Draft = { markdown: "", buttons: [], streaming: false };

function toRefs(teamId: string, stored: readonly Stored[]): AttachmentRef[] {
  return toAttachments(
    { teamId },
    stored.map(({ id, file }) => ({ id, name: file.name, size: file.bytes.length })),
  );
}

function checkFiles(files: readonly OutboundFile[]): void {
  if (files.length === 0 || files.length > MAX_FILES) {
    throw new SinkError("rejected", `${files.length} files; one to ${MAX_FILES} fit in a message.`);
  }
  const wrong = files.find(({ bytes }) => bytes.length === 0 || bytes.length > MAX_FILE_BYTES);
  if (wrong === undefined) return;
  const why = wrong.bytes.length === 0 ? "is empty" : "is over 50 MiB";
  throw new SinkError("rejected", `The file ${JSON.stringify(wrong.name)} ${why}.`);
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

/** The address takes the bytes from whoever knows it: no token goes there. */
function checkHost(address: string, apiUrl: string | undefined): URL {
  const url = new URL(address);
  const isOwn = apiUrl !== undefined && url.origin === new URL(apiUrl).origin;
  if (isOwn || (url.protocol === "https:" && UPLOAD_HOST.test(url.hostname))) return url;
  throw new SinkError("unavailable", "Slack named a place for the file that is not one of its own.");
}

async function send(url: URL, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/octet-stream" };
  const method = "upload";
  try {
    const { statusCode: status, body } = await request(url, { method: "POST", headers, body: bytes, signal });
    await body.dump();
    if (status === 200) return;
    throw new SlackApiError(method, `Slack answered the ${method} of a file with ${status}.`, { code: "", status });
  } catch (error) {
    if (signal.aborted || error instanceof SlackApiError) throw error;
    throw new SlackApiError(method, `Slack did not take the ${method} of a file.`, { code: "", status: 0 });
  }
}
