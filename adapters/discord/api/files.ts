import { type APIAttachment, type APIMessage, MessageFlags, Routes } from "discord.js";
import { createGuardedFetch } from "../../../src/media/fetch.ts";
import { FileProblem } from "../../../src/media/file-problem.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { type MessagePlace, PLATFORM } from "../ids.ts";
import type { Api } from "./client.ts";
import { attachmentsOf, createFileLinks, type FileLinksDeps, HOSTS } from "./file-links.ts";

/** More than Discord takes from anybody: those who read have bounds of their own. */
const MAX_READ_BYTES = 512 * 1024 * 1024;
/** Left of a link that is used at once. */
const OPEN_MS = 60_000;
/** Left of a link that somebody else uses: the gateway may take its time. */
const PUBLIC_MS = 15 * 60_000;

type Message = Pick<APIMessage, "id" | "channel_id" | "attachments" | "message_snapshots">;

/** The files people attached and the bot posted, and the way back to their bytes. */
export interface Files {
  /** Of a message, which is asked for again when the links have ended. */
  toRefs(message: Message): AttachmentRef[];
  /** Its pictures alone. */
  toPictureRefs(message: Message): AttachmentRef[];
  /** Of a command: nothing but the link itself leads to it, for as long as Discord keeps it. */
  toLinkedRefs(attachments: readonly APIAttachment[]): AttachmentRef[];
  /** Of a message of the bot: what only one person sees cannot be asked for again. */
  toPostedRefs(message: Message & Pick<APIMessage, "flags">): AttachmentRef[];
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
    return { platform: PLATFORM, id, name: toOriginalName(filename, title), sizeBytes: size };
  }

  function toRefs(message: Message, attachments = attachmentsOf(message)): AttachmentRef[] {
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
      const { data } = await deps.api.call(
        { method: "GET", route: Routes.channelMessage(channelId, messageId) },
        signal,
      );
      return toRefs(data as APIMessage, picturesOf(data as APIMessage));
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
    return type === undefined ? typeof width === "number" : type.startsWith("image/");
  });
}

/** Letters that a link cannot carry are taken out of a file's name; its title still has them. */
function toOriginalName(filename: string, title: string | undefined): string {
  if (title === undefined) return filename;
  const extension = /\.\w+$/.exec(filename)?.[0] ?? "";
  return title.endsWith(extension) ? title : title + extension;
}
