import { createHash, createHmac } from "node:crypto";

export const PLATFORM = "slack";

const DIGEST_CHARS = 22;

/** The place of a message. */
export interface MessagePlace {
  teamId: string;
  channelId: string;
  ts: string;
}

/** A message's id as the core knows it: writing to a message needs its workspace and its channel too. */
export function toMessageId({ teamId, channelId, ts }: MessagePlace): string {
  return `${PLATFORM}:${teamId}:${channelId}:${ts}`;
}

/** Undefined for an id of anything but a message on Slack. */
export function readMessageId(id: string): MessagePlace | undefined {
  const [, teamId, channelId, ts] = /^slack:(\w+):(\w+):(\d+\.\d+)$/.exec(id) ?? [];
  return teamId === undefined || channelId === undefined || ts === undefined ? undefined : { teamId, channelId, ts };
}

/**
 * The core's id of a person. Slack's own id is unique within one workspace, or within one organisation of several, so
 * the core's begins with that: `T…/U…`, `E…/U…`. In a channel that several workspaces share, people keep the id of their
 * own workspace, which `userTeam` names, wherever they act. An organisation's guests get the organisation's id: not all
 * of Slack's payloads tell a guest from somebody of another of its workspaces, and no two people in one channel have the
 * same id.
 */
export function toPersonId(
  { teamId, enterpriseId }: { teamId: string; enterpriseId?: string | undefined },
  userId: string,
  userTeam = teamId,
): string {
  return `${enterpriseId ?? userTeam}/${userId}`;
}

/** Slack's own id of a person. Earlier versions stored that alone. */
export function readUserId(personId: string): string {
  return personId.slice(personId.lastIndexOf("/") + 1);
}

/** The time at which a message was written, Unix milliseconds. */
export function timeOf(ts: string): number {
  return Number(ts) * 1_000;
}

/**
 * Names a message that only one person sees, to which Slack gives no id that leads back. The same for the same nonce in
 * every process.
 */
export function toEphemeralId(teamId: string, channelId: string, nonce: string): string {
  return `${PLATFORM}:${teamId}:${channelId}:only-${toFingerprint(nonce)}`;
}

/** A short name for a text, the same in every process. It hides nothing: anyone who knows the text can compute it. */
export function toFingerprint(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, DIGEST_CHARS);
}

/** Makes the mark by which a message is found again, from the nonce it was posted with. */
export type ToMark = (nonce: string) => string;

/**
 * Makes the same mark of the same nonce in every process. Nobody can forge one without the key, though every app in the
 * workspace can read the ids that a nonce is made of. Marks of version 0.1, which had no key, are not recognised: a post
 * that it made at the moment it was killed, and had not stored yet, is made once more after an upgrade.
 */
export function createToMark(key: string): ToMark {
  return (nonce) => createHmac("sha256", key).update(nonce).digest("base64url").slice(0, DIGEST_CHARS);
}
