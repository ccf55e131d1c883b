import { PermissionFlagsBits } from "discord.js";

export type PermissionName = keyof typeof PermissionFlagsBits;

export interface Permission {
  name: PermissionName;
  /** As Discord's own settings call it. */
  title: string;
  /** In plain words. */
  why: string;
}

/** What the bot asks for when it is invited: nothing that it can do without. */
export const PERMISSIONS: ReadonlyArray<Permission> = [
  { name: "ViewChannel", title: "View Channels", why: "to be spoken to in a channel" },
  { name: "SendMessages", title: "Send Messages", why: "to answer in a channel" },
  { name: "SendMessagesInThreads", title: "Send Messages in Threads", why: "to answer in threads and forum posts" },
  { name: "CreatePublicThreads", title: "Create Public Threads", why: "to answer in a thread while a channel is busy" },
  {
    name: "ReadMessageHistory",
    title: "Read Message History",
    why: "to point at what it answers, and to read what was said in a thread before it was asked there",
  },
  { name: "AttachFiles", title: "Attach Files", why: "to post pictures, and very long answers as a file" },
];

/** All of them as Discord counts them. */
export const PERMISSION_BITS: bigint = PERMISSIONS.reduce((bits, { name }) => bits | PermissionFlagsBits[name], 0n);

/** The link by which somebody who manages a server lets the bot in. */
export function inviteLink(applicationId: string): string {
  const query = new URLSearchParams({
    client_id: applicationId,
    scope: "bot applications.commands",
    permissions: PERMISSION_BITS.toString(),
  });
  return `https://discord.com/oauth2/authorize?${query.toString()}`;
}

/** A token begins with the application's id; undefined for what stands in for one. */
export function applicationIdOf(token: string): string | undefined {
  const [first = "", ...rest] = token.trim().split(".");
  const id = Buffer.from(first, "base64url").toString();
  return rest.length === 2 && /^\d{17,20}$/.test(id) ? id : undefined;
}
