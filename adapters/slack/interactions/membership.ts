import { codeOf } from "../api/error.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { Presence } from "../people/access.ts";
import type { HandlerDeps } from "./user-action.ts";

/** Slack waits three seconds for the acknowledgement of what needs the answer. */
const LOOK_MS = 1_000;
/** Long before Slack, so that nothing anybody wrote is read. */
const LONG_AGO = "1.000000";
const ABSENT = new Set(["not_in_channel", "channel_not_found"]);

export const NOT_HERE =
  "I am not in this channel, so I cannot write here. Add me with `/invite` and my name, or write to me directly.";

/** Why a form brings no picture to a conversation in which the bot does not find the person. */
export function describeAbsence({ missing }: Presence): string {
  const why =
    missing === undefined
      ? "Slack does not tell me that you are in this conversation."
      : `I lack the permission ${missing}, so Slack does not tell me who is in this conversation. An administrator can grant it.`;
  return `${why} Give the command /imagine there instead.`;
}

/** True when Slack refused something because the bot is not there. */
export function isAbsence(error: unknown): boolean {
  return ABSENT.has(codeOf(error));
}

/**
 * True when the bot may write in a channel, and when Slack does not tell in time. Asks by reading, which needs no scope
 * besides those for conversations.
 */
export async function isMember(
  { teamId }: Workspace,
  channelId: string,
  { api }: Pick<HandlerDeps, "api">,
): Promise<boolean> {
  const nothing = { channel: channelId, latest: LONG_AGO, limit: 1 };
  try {
    await api.call(teamId, "conversations.history", nothing, AbortSignal.timeout(LOOK_MS));
    return true;
  } catch (error) {
    return !isAbsence(error);
  }
}
