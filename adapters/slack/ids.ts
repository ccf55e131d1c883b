import { createHash, createHmac } from "node:crypto";

export const PLATFORM = "slack";

const DIGEST_CHARS = 22;

/** The workspace, the channel and the ts of a message. */
export interface MessagePlace {
  teamId: string;
  channelId: string;
  ts: string;
}

/**
 * A message's id in the bot's format. It contains the workspace and the channel, because writing to a message needs
 * them too.
 */
export function toMessageId({ teamId, channelId, ts }: MessagePlace): string {
  return `${PLATFORM}:${teamId}:${channelId}:${ts}`;
}

/** Undefined if the id does not belong to a Slack message. */
export function readMessageId(id: string): MessagePlace | undefined {
  const [, teamId, channelId, ts] = /^slack:(\w+):(\w+):(\d+\.\d+)$/.exec(id) ?? [];
  return teamId === undefined || channelId === undefined || ts === undefined ? undefined : { teamId, channelId, ts };
}

/**
 * A person's id in the bot's format. Slack's id is unique only within one workspace or organisation, so the bot's id
 * starts with that: `T…/U…`, `E…/U…`. In a channel that several workspaces share, people keep the id with their own
 * workspace, `userTeam`, wherever they act. An organisation's guests get the organisation's id, because some of Slack's
 * payloads do not distinguish guests from members of its other workspaces. No two people in one channel have the same
 * id.
 */
export function toPersonId(
  { teamId, enterpriseId }: { teamId: string; enterpriseId?: string | undefined },
  userId: string,
  userTeam = teamId,
): string {
  return `${enterpriseId ?? userTeam}/${userId}`;
}

/** Slack's own id of a person. */
export function readUserId(personId: string): string {
  return personId.slice(personId.lastIndexOf("/") + 1);
}

/** When a message was written, Unix milliseconds. */
export function timeOf(ts: string): number {
  return Number(ts) * 1_000;
}

/**
 * Identifies an ephemeral message, because Slack gives it no usable id. The same nonce gives the same id in every
 * process.
 */
export function toEphemeralId(teamId: string, channelId: string, nonce: string): string {
  return `${PLATFORM}:${teamId}:${channelId}:only-${toFingerprint(nonce)}`;
}

/**
 * A short hash of a text, the same in every process. It hides nothing, because anyone who knows the text can compute
 * it.
 */
export function toFingerprint(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, DIGEST_CHARS);
}

/** Creates a mark from the nonce of a message's post. The mark identifies the message later. */
export type ToMark = (nonce: string) => string;

/**
 * Creates the same mark from the same nonce in every process. No one can forge a mark without the key, although every
 * app in the workspace can read the ids in a nonce. Marks from version 0.1 had no key and are not recognized. If a
 * process of that version was killed while it was posting a message, an upgraded process posts the message again.
 */
export function createToMark(key: string): ToMark {
  return (nonce) => createHmac("sha256", key).update(nonce).digest("base64url").slice(0, DIGEST_CHARS);
}
