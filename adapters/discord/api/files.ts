import { type APIAttachment, type APIMessage, MessageFlags, Routes } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createGuardedFetch } from "../../../src/media/fetch.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { type MessagePlace, PLATFORM } from "../ids.ts";
import { type Api, read } from "./client.ts";

/** More than Discord accepts from anybody; callers have tighter bounds of their own. */
const MAX_READ_BYTES = 512 * 1024 * 1024;
/** The least time left of a link that is used at once. */
const OPEN_MS = 60_000;
/** The least time left of a link that the gateway uses, which may take its time. */
const PUBLIC_MS = 15 * 60_000;

type MessageWithFiles = Pick<APIMessage, "id" | "channel_id" | "attachments" | "message_snapshots">;

/** The files people attached and the bot posted, and the way back to their bytes. */
export interface Files {
  /** Files of a message, which is asked for again when the links have ended. */
  toRefs(message: MessageWithFiles): AttachmentRef[];
  /** Its pictures alone. */
  toPictureRefs(message: MessageWithFiles): AttachmentRef[];
  /** Files of a command: nothing but the link itself leads to one, for as long as Discord keeps it. */
  toLinkedRefs(attachments: readonly APIAttachment[]): AttachmentRef[];
  /** Files of a message of the bot: an ephemeral one cannot be asked for again. */
  toPostedRefs(message: MessageWithFiles & Pick<APIMessage, "flags">): AttachmentRef[];
  /** The pictures among the files of a message, where the bot may read it. */
  readPictures(place: MessagePlace, signal: AbortSignal): Promise<AttachmentRef[]>;
  /** Bytes of an attachment. Rejects in plain words when it is gone. */
  open(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** A link that everybody can follow for a quarter of an hour yet. Rejects in plain words when it is gone. */
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
    // Some servers do not tell the size; the file is bounded as it is read.
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
        // Discord has no page to log in at among its files, and keeps web pages that people attach.
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
  return new Error(`The file ${JSON.stringify(name)} cannot be opened any more. ${why}`, { cause: error });
}

/** Discord derives the type from the name; a size in pixels says that it could decode it. */
export function picturesOf(message: Pick<APIMessage, "attachments" | "message_snapshots">): APIAttachment[] {
  return attachmentsOf(message).filter(({ content_type: type, width }) => {
    // Some servers send null for what they do not know.
    return type ? type.startsWith("image/") : typeof width === "number";
  });
}

/** Letters that a link cannot carry are taken out of a file's name; its title still has them. */
function toOriginalName(filename: string, title: string | null | undefined): string {
  if (!title) return filename;
  const extension = /\.\w+$/.exec(filename)?.[0] ?? "";
  return title.endsWith(extension) ? title : title + extension;
}

/** Discord's own. Links to other hosts are never followed. */
const HOSTS: ReadonlySet<string> = new Set(["cdn.discordapp.com", "media.discordapp.net"]);
/** Links remembered, so that a file that was just sent is opened without asking for its link again. */
const MAX_LINKS = 500;
const REFRESH_ROUTE = "/attachments/refresh-urls";

/** The signed links under which Discord gives files out, each for a day or so. */
export interface FileLinks {
  remember(id: string, url: string): void;
  /** A link to Discord's own hosts that is good for `leftMs` yet. Rejects where there is none any more. */
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
    if (!isDiscords && url.origin !== ownOrigin) throw new Error("It is not kept by Discord.");
    return link;
  }

  async function findInMessage(id: string, [channelId, messageId, attachmentId]: string[], signal: AbortSignal) {
    const route = Routes.channelMessage(channelId ?? "", messageId ?? "");
    const message = await read<APIMessage>(api, route, signal);
    const found = attachmentsOf(message).find((attachment) => attachment.id === attachmentId);
    if (found === undefined) throw new Error("Its message has it no more.");
    links.set(id, found.url);
    return toChecked(found.url);
  }

  /** Discord renews the link of a file that stands in a message, and leaves that of an upload as it is. */
  async function refresh(link: string, leftMs: number, signal: AbortSignal): Promise<string> {
    const body = { attachment_urls: [link] };
    const { data } = await api.call({ method: "POST", route: REFRESH_ROUTE, body }, signal);
    const { refreshed_urls: [answer] = [] } = data as { refreshed_urls?: { refreshed?: string }[] };
    const renewed = toChecked(answer?.refreshed ?? link);
    if (expiresAt(renewed) <= now() + leftMs)
      throw new Error("Discord keeps what is uploaded with a command for a while only. Attach it again.");
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

/** A message's own files, and those of a message it forwards. Lists without anything in them may be left out. */
function attachmentsOf({
  attachments = [],
  message_snapshots = [],
}: Partial<Pick<APIMessage, "attachments" | "message_snapshots">>): APIAttachment[] {
  return [...attachments, ...message_snapshots.flatMap(({ message }) => message.attachments ?? [])];
}

/**
 * The end of a signed link, Unix milliseconds; Infinity where the link names none.
 * https://docs.discord.com/developers/reference#signed-attachment-cdn-urls
 */
function expiresAt(link: string): number {
  const seconds = Number.parseInt(new URL(link).searchParams.get("ex") ?? "", 16);
  return Number.isNaN(seconds) ? Number.POSITIVE_INFINITY : seconds * 1_000;
}
