import { type APIAttachment, type APIMessage, Routes } from "discord.js";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { Api } from "./client.ts";

/** Discord's own. Links elsewhere are not followed, whoever wrote them. */
export const HOSTS: ReadonlySet<string> = new Set(["cdn.discordapp.com", "media.discordapp.net"]);
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

export function createFileLinks({ api, apiUrl, now }: FileLinksDeps): FileLinks {
  const ownOrigin = apiUrl === undefined ? undefined : new URL(apiUrl).origin;
  const links = new Map<string, string>();

  function remember(id: string, url: string): void {
    links.delete(id);
    links.set(id, url);
    const [oldest] = links.keys();
    if (links.size > MAX_LINKS && oldest !== undefined) links.delete(oldest);
  }

  function toChecked(link: string): string {
    const url = new URL(link);
    const isDiscords = url.protocol === "https:" && HOSTS.has(url.host);
    if (!isDiscords && url.origin !== ownOrigin) throw new Error("It is not kept by Discord.");
    return link;
  }

  async function findInMessage(id: string, [channelId, messageId, attachmentId]: string[], signal: AbortSignal) {
    const route = Routes.channelMessage(channelId ?? "", messageId ?? "");
    const { data } = await api.call({ method: "GET", route }, signal);
    const found = attachmentsOf(data as APIMessage).find((attachment) => attachment.id === attachmentId);
    if (found === undefined) throw new Error("Its message has it no more.");
    remember(id, found.url);
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
    remember(link, renewed);
    return renewed;
  }

  return {
    remember,
    async find({ id }, leftMs, signal) {
      const [, ...place] = /^(\d+):(\d+):(\d+)$/.exec(id) ?? [];
      const link = links.get(id) ?? (place.length === 0 ? id : undefined);
      if (link !== undefined && expiresAt(toChecked(link)) > now() + leftMs) return link;
      return place.length === 0 ? refresh(id, leftMs, signal) : findInMessage(id, place, signal);
    },
  };
}

/** A message's own files, and those of a message it forwards. Lists without anything in them may be left out. */
export function attachmentsOf({
  attachments = [],
  message_snapshots = [],
}: Partial<Pick<APIMessage, "attachments" | "message_snapshots">>): APIAttachment[] {
  return [...attachments, ...message_snapshots.flatMap(({ message }) => message.attachments ?? [])];
}

/** When a signed link ends, Unix milliseconds; a link that says nothing of an end has none. */
function expiresAt(link: string): number {
  const seconds = Number.parseInt(new URL(link).searchParams.get("ex") ?? "", 16);
  return Number.isNaN(seconds) ? Number.POSITIVE_INFINITY : seconds * 1_000;
}
