import { type APIAttachment, type APIMessage, MessageFlags, Routes } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createGuardedFetch } from "../../../src/media/fetch.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { type MessagePlace, PLATFORM } from "../ids.ts";
import { type Api, read } from "./client.ts";

/** More than Discord allows for anyone. Callers have tighter limits. */
const MAX_READ_BYTES = 512 * 1024 * 1024;
/** A link for immediate use must be valid for at least this long. */
const OPEN_MS = 60_000;
/** A link for the AI gateway must be valid for at least this long, because the gateway can open it later. */
const PUBLIC_MS = 15 * 60_000;

type MessageWithFiles = Pick<APIMessage, "id" | "channel_id" | "attachments" | "message_snapshots">;

export interface Files {
  /** The files in a message. If a file's link has expired, opening the file reads the message again. */
  toRefs(message: MessageWithFiles): AttachmentRef[];
  /** Like `toRefs`, but only images. */
  toPictureRefs(message: MessageWithFiles): AttachmentRef[];
  /** The files of a command. No message contains them, so they open only by their links, while Discord keeps them. */
  toLinkedRefs(attachments: readonly APIAttachment[]): AttachmentRef[];
  /** The files of one of the bot's messages. Private files are links, because the bot cannot read them again. */
  toPostedRefs(message: MessageWithFiles & Pick<APIMessage, "flags">): AttachmentRef[];
  readPictures(place: MessagePlace, signal: AbortSignal): Promise<AttachmentRef[]>;
  /** Rejects with a message for users if the file is gone. */
  open(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** Resolves to a link valid for at least 15 minutes. Rejects with a message for users if the file is gone. */
  publicUrl(ref: AttachmentRef, signal: AbortSignal): Promise<string>;
}

export interface FilesDeps extends FileLinksDeps {
  api: Api;
}

export function createFiles(deps: FilesDeps): Files {
  const links = createFileLinks(deps);
  const origins = deps.apiUrl === undefined ? [] : [new URL(deps.apiUrl).origin];
  const fetch = createGuardedFetch({ owner: "Discord", hosts: [...HOSTS], origins });

  function toRef(id: string, { filename, title, size }: APIAttachment): AttachmentRef {
    // Servers that imitate Discord can omit the size. The reader enforces the size limit anyway.
    const sizeBytes = Number.isFinite(size) ? size : 0;
    return { platform: PLATFORM, id, name: toOriginalName(filename, title), sizeBytes };
  }

  function toRefs(message: MessageWithFiles, attachments = attachmentsOf(message)): AttachmentRef[] {
    return attachments.map((attachment) => {
      const ref = toRef(`${message.channel_id}:${message.id}:${attachment.id}`, attachment);
      links.remember(ref.id, attachment.url);
      return ref;
    });
  }

  const toLinkedRefs: Files["toLinkedRefs"] = (attachments) => {
    return attachments.map((attachment) => ({ ...toRef(attachment.url, attachment), isFleeting: true }));
  };

  return {
    toRefs: (message) => toRefs(message),
    toPictureRefs: (message) => toRefs(message, picturesOf(message)),
    toLinkedRefs,
    toPostedRefs(message) {
      const isPrivate = ((message.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
      return isPrivate ? toLinkedRefs(message.attachments) : toRefs(message);
    },
    async readPictures({ channelId, messageId }, signal) {
      const message = await read<APIMessage>(deps.api, Routes.channelMessage(channelId, messageId), signal);
      return toRefs(message, picturesOf(message));
    },
    async open(ref, signal) {
      try {
        // Allows HTML files: users can attach web pages, and Discord's file servers never show a login page.
        const request = { maxBytes: MAX_READ_BYTES, mayBePage: true };
        return await fetch.open(await links.find(ref, OPEN_MS, signal), request, signal);
      } catch (error) {
        throw toGone(ref, error, signal);
      }
    },
    async publicUrl(ref, signal) {
      try {
        return await links.find(ref, PUBLIC_MS, signal);
      } catch (error) {
        throw toGone(ref, error, signal);
      }
    },
  };
}

function toGone({ name }: AttachmentRef, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const message = error instanceof Error ? error.message : "";
  const why = error instanceof FileProblem ? `It ${message}.` : message;
  return new Error(`The file ${JSON.stringify(name)} can no longer be opened. ${why}`, { cause: error });
}

/** An attachment is an image if its type says so. Without a type, it is one if Discord gives its width. */
export function picturesOf(message: Pick<APIMessage, "attachments" | "message_snapshots">): APIAttachment[] {
  return attachmentsOf(message).filter(({ content_type: type, width }) => {
    // Some servers send null for an unknown field.
    return type ? type.startsWith("image/") : typeof width === "number";
  });
}

/** Prefers the title, because Discord removes characters from the file's name that a link cannot contain. */
function toOriginalName(filename: string, title: string | null | undefined): string {
  if (!title) return filename;
  const extension = /\.\w+$/.exec(filename)?.[0] ?? "";
  return title.endsWith(extension) ? title : title + extension;
}

/** Discord's hosts. The bot never follows links to other hosts. */
const HOSTS: ReadonlySet<string> = new Set(["cdn.discordapp.com", "media.discordapp.net"]);
/** Remembered links let the bot open a recent file without a call. */
const MAX_LINKS = 500;
const REFRESH_ROUTE = "/attachments/refresh-urls";

/** Discord's signed links to files. Each is valid for about a day. */
export interface FileLinks {
  remember(id: string, url: string): void;
  /** Resolves to a link to Discord's own hosts that is valid for another `leftMs`. Rejects if the file is gone. */
  find(ref: AttachmentRef, leftMs: number, signal: AbortSignal): Promise<string>;
}

export interface FileLinksDeps {
  api: Api;
  apiUrl?: string;
  now(): number;
}

function createFileLinks({ api, apiUrl, now }: FileLinksDeps): FileLinks {
  const ownOrigin = apiUrl === undefined ? undefined : new URL(apiUrl).origin;
  const links = new BoundedMap<string, string>(MAX_LINKS);

  function toChecked(link: string): string {
    const url = new URL(link);
    const isDiscords = url.protocol === "https:" && HOSTS.has(url.host);
    if (!isDiscords && url.origin !== ownOrigin) throw new Error("It is not hosted by Discord.");
    return link;
  }

  async function findInMessage(id: string, [channelId, messageId, attachmentId]: string[], signal: AbortSignal) {
    const route = Routes.channelMessage(channelId ?? "", messageId ?? "");
    const message = await read<APIMessage>(api, route, signal);
    const found = attachmentsOf(message).find((attachment) => attachment.id === attachmentId);
    if (found === undefined) throw new Error("It is no longer attached to its message.");
    links.set(id, found.url);
    return toChecked(found.url);
  }

  /** Discord renews the link to a file in a message, but returns the link to an upload unchanged. */
  async function refresh(link: string, leftMs: number, signal: AbortSignal): Promise<string> {
    const body = { attachment_urls: [link] };
    const { data } = await api.call({ method: "POST", route: REFRESH_ROUTE, body }, signal);
    const { refreshed_urls: [answer] = [] } = data as { refreshed_urls?: { refreshed?: string }[] };
    const renewed = toChecked(answer?.refreshed ?? link);
    if (expiresAt(renewed) <= now() + leftMs)
      throw new Error("Discord deletes files uploaded with a command after a while. Attach it again.");
    links.set(link, renewed);
    return renewed;
  }

  return {
    remember: (id, url) => void links.set(id, url),
    async find({ id }, leftMs, signal) {
      const [, ...place] = /^(\d+):(\d+):(\d+)$/.exec(id) ?? [];
      const link = links.get(id) ?? (place.length === 0 ? id : undefined);
      if (link !== undefined && expiresAt(toChecked(link)) > now() + leftMs) return link;
      return place.length === 0 ? refresh(id, leftMs, signal) : findInMessage(id, place, signal);
    },
  };
}

/** Includes a forward's files. Attachments can be missing: servers that imitate Discord omit empty lists. */
function attachmentsOf({
  attachments = [],
  message_snapshots = [],
}: Partial<Pick<APIMessage, "attachments" | "message_snapshots">>): APIAttachment[] {
  return [...attachments, ...message_snapshots.flatMap(({ message }) => message.attachments ?? [])];
}

/**
 * When a signed link expires, in Unix milliseconds. Infinity if the link has no expiry.
 * https://docs.discord.com/developers/reference#signed-attachment-cdn-urls
 */
function expiresAt(link: string): number {
  const seconds = Number.parseInt(new URL(link).searchParams.get("ex") ?? "", 16);
  return Number.isNaN(seconds) ? Number.POSITIVE_INFINITY : seconds * 1_000;
}
