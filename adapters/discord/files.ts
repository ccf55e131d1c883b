import { type APIAttachment, type APIMessage, type RawFile, Routes } from "discord.js";
import { request } from "undici";
import type { AttachmentRef, OutboundFile } from "../../src/adapter.ts";
import { SinkError } from "../../src/errors.ts";
import type { Api } from "./api.ts";
import { PLATFORM } from "./ids.ts";

export const MAX_FILES = 10;
/** Of one file, in a server without boosts. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** Of a whole request, with room for what frames the files. */
const MAX_REQUEST_BYTES = 24 * 1024 * 1024;
const NAME_CHARS = 100;

/** Discord's own. Links elsewhere are not followed, whoever wrote them. */
const HOSTS = new Set(["cdn.discordapp.com", "media.discordapp.net"]);
const HEADERS_TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 30_000;
/** Links remembered, so that a file that was just sent is opened without asking for its link again. */
const MAX_LINKS = 500;
const LINK_MARGIN_MS = 60_000;

/** A file as it goes to Discord. */
export type Upload = OutboundFile;

/** The parts of a call that carry files beside a body. */
export function attach(body: object, files: readonly Upload[]): { body: object; files?: RawFile[] } {
  if (files.length === 0) return { body };
  const attachments = files.map(({ name }, index) => ({ id: String(index), filename: toFileName(name) }));
  const raw = files.map(({ name, bytes, contentType }, index) => {
    return { key: `files[${index}]`, name: toFileName(name), data: Buffer.from(bytes), contentType };
  });
  return { body: { ...body, attachments }, files: raw };
}

/** Throws a `SinkError` for what Discord would not take. */
export function checkFiles(files: readonly Upload[]): void {
  if (files.length > MAX_FILES)
    throw new SinkError("rejected", `${files.length} files; ${MAX_FILES} fit in a message.`);
  const large = files.find(({ bytes }) => bytes.length > MAX_FILE_BYTES);
  if (large !== undefined) throw new SinkError("rejected", `The file ${JSON.stringify(large.name)} is over 10 MiB.`);
  const sum = files.reduce((total, { bytes }) => total + bytes.length, 0);
  if (sum > MAX_REQUEST_BYTES) throw new SinkError("rejected", "The files of one message are over 24 MiB together.");
}

function toFileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const letters = Array.from(last.replace(/[\p{Cc}\p{Cf}\p{Cs}"]+/gu, "").trim());
  return letters.length === 0 ? "file" : letters.slice(-NAME_CHARS).join("");
}

/** The files people attached, and the way back to their bytes. */
export interface Files {
  /** Of a message, which is asked for again when the links have ended. */
  toRefs(message: Pick<APIMessage, "id" | "channel_id">, attachments: readonly APIAttachment[]): AttachmentRef[];
  /** Of a command: nothing but the link itself leads to it, for as long as Discord keeps it. */
  toLinkedRefs(attachments: readonly APIAttachment[]): AttachmentRef[];
  /** Bytes of an attachment. Rejects in plain words when it is gone. */
  open(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

export interface FilesDeps {
  api: Api;
  apiUrl?: string;
  now(): number;
}

export function createFiles({ api, apiUrl, now }: FilesDeps): Files {
  const ownOrigin = apiUrl === undefined ? undefined : new URL(apiUrl).origin;
  const links = new Map<string, string>();

  function remember(id: string, url: string): void {
    links.delete(id);
    links.set(id, url);
    const [oldest] = links.keys();
    if (links.size > MAX_LINKS && oldest !== undefined) links.delete(oldest);
  }

  function toRef(id: string, { filename, title, size }: APIAttachment): AttachmentRef {
    return { platform: PLATFORM, id, name: toOriginalName(filename, title), sizeBytes: size };
  }

  /** A link that works for a while yet. */
  async function findLink(ref: AttachmentRef, signal: AbortSignal): Promise<string> {
    const [, channelId, messageId, attachmentId] = /^(\d+):(\d+):(\d+)$/.exec(ref.id) ?? [];
    if (channelId === undefined || messageId === undefined) return ref.id;
    const known = links.get(ref.id);
    if (known !== undefined && expiresAt(known) > now() + LINK_MARGIN_MS) return known;
    const { data } = await api.call({ method: "GET", route: Routes.channelMessage(channelId, messageId) }, signal);
    const found = attachmentsOf(data as APIMessage).find(({ id }) => id === attachmentId);
    if (found === undefined) throw new Error("Its message has it no more.");
    remember(ref.id, found.url);
    return found.url;
  }

  function checkAddress(link: string): URL {
    const url = new URL(link);
    const isDiscords = url.protocol === "https:" && HOSTS.has(url.host);
    if (!isDiscords && url.origin !== ownOrigin) throw new Error("It is not kept by Discord.");
    return url;
  }

  return {
    toRefs({ id, channel_id }, attachments) {
      return attachments.map((attachment) => {
        const ref = toRef(`${channel_id}:${id}:${attachment.id}`, attachment);
        remember(ref.id, attachment.url);
        return ref;
      });
    },
    toLinkedRefs: (attachments) => attachments.map((attachment) => toRef(attachment.url, attachment)),
    async open(ref, signal) {
      try {
        const url = checkAddress(await findLink(ref, signal));
        // Redirects are not followed: a link of Discord's leads to the bytes themselves.
        const { statusCode, body } = await request(url, {
          signal,
          headersTimeout: HEADERS_TIMEOUT_MS,
          bodyTimeout: BODY_TIMEOUT_MS,
        });
        if (statusCode === 200) return body;
        await body.dump();
        throw new Error(`Discord answered with ${statusCode}.`);
      } catch (error) {
        signal.throwIfAborted();
        const why = error instanceof Error ? error.message : "";
        throw new Error(`The file ${JSON.stringify(ref.name)} cannot be opened any more. ${why}`, { cause: error });
      }
    },
  };
}

/** A message's own files, and those of a message it forwards. */
export function attachmentsOf({ attachments, message_snapshots = [] }: APIMessage): APIAttachment[] {
  return [...attachments, ...message_snapshots.flatMap(({ message }) => message.attachments)];
}

/** Letters that a link cannot carry are taken out of a file's name; its title still has them. */
function toOriginalName(filename: string, title: string | undefined): string {
  if (title === undefined) return filename;
  const extension = /\.\w+$/.exec(filename)?.[0] ?? "";
  return title.endsWith(extension) ? title : title + extension;
}

/** When a signed link ends, Unix milliseconds. */
function expiresAt(link: string): number {
  const seconds = Number.parseInt(new URL(link).searchParams.get("ex") ?? "", 16);
  return Number.isNaN(seconds) ? 0 : seconds * 1_000;
}
