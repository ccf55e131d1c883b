import { createHash, createHmac } from "node:crypto";

export const PLATFORM = "slack";

const DIGEST_CHARS = 22;

export interface MessagePlace {
  teamId: string;
  channelId: string;
  ts: string;
}

/** A message's id in the bot's format. Includes the workspace and the channel, which every write needs too. */
export function toMessageId({ teamId, channelId, ts }: MessagePlace): string {
  return `${PLATFORM}:${teamId}:${channelId}:${ts}`;
}

/** Undefined if the id does not belong to a Slack message. */
export function readMessageId(id: string): MessagePlace | undefined {
  const [, teamId, channelId, ts] = /^slack:(\w+):(\w+):(\d+\.\d+)$/.exec(id) ?? [];
  return teamId === undefined || channelId === undefined || ts === undefined ? undefined : { teamId, channelId, ts };
}

/**
 * A person's id in the bot's format: `T…/U…` or `E…/U…`. Slack's id is unique only within one workspace or
 * organisation, so the bot's id starts with that. In a channel that several workspaces share, people keep the id with
 * their own workspace, `userTeam`. An organisation's guests get the organisation's id, because some of Slack's payloads
 * do not distinguish guests from members of its other workspaces. No two people in one channel have the same id.
 */
export function toPersonId(
  { teamId, enterpriseId }: { teamId: string; enterpriseId?: string | undefined },
  userId: string,
  userTeam = teamId,
): string {
  return `${enterpriseId ?? userTeam}/${userId}`;
}

export function readUserId(personId: string): string {
  return personId.slice(personId.lastIndexOf("/") + 1);
}

/** When a message was written, in Unix milliseconds. */
export function timeOf(ts: string): number {
  return Number(ts) * 1_000;
}

/** Makes an id for an ephemeral message, because Slack gives it none. Equal nonces give equal ids in every process. */
export function toEphemeralId(teamId: string, channelId: string, nonce: string): string {
  return `${PLATFORM}:${teamId}:${channelId}:only-${toFingerprint(nonce)}`;
}

/** A short hash of a text, the same in every process. Anyone who knows the text can compute it. */
export function toFingerprint(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, DIGEST_CHARS);
}

/** Creates a mark from the nonce of a message's post. The mark identifies the message later. */
export type ToMark = (nonce: string) => string;

/**
 * The same nonce gives the same mark in every process. Without the key, no one can forge a mark, although every app in
 * the workspace can read the ids in a nonce. Marks from version 0.1 had no key and are not recognized: a message that
 * such a process was posting when it was killed is posted again.
 */
export function createToMark(key: string): ToMark {
  return (nonce) => createHmac("sha256", key).update(nonce).digest("base64url").slice(0, DIGEST_CHARS);
}
