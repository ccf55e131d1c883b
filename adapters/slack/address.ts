import type { ReplyAddress } from "../../src/port/events.ts";

export interface SlackExtra {
  /** The workspace whose token writes the reply. */
  team: string;
  /** The person who gets the reply. `chat.startStream` requires it in channels. */
  user?: string;
  /** That person's workspace. It differs from `team` in channels that organisations share. */
  recipientTeam?: string;
  /**
   * The URL for replies to a command or a button. Slack accepts five replies within half an hour.
   * https://docs.slack.dev/interactivity/handling-user-interaction
   */
  responseUrl?: string;
  /** Set for an action on an ephemeral message, which `responseUrl` can replace. */
  isOnEphemeral?: "true";
  /**
   * The question's thread if it has replies: Slack shows ephemeral messages in no other thread.
   * https://docs.slack.dev/reference/methods/chat.postEphemeral
   */
  activeThread?: string;
  /** The channel that the person has open next to the pane. */
  lookingAt?: string;
  /** A token for one search on behalf of the message's author. Slack accepts it only for a short time. */
  actionToken?: string;
  /** Set for an action on the person's home tab, which is redrawn after the answer. */
  isFromHome?: "true";
}

/** A stored address can have only the workspace. Throws if the address is not Slack's. */
export function readExtra({ extra = {}, platform, workspaceId }: ReplyAddress): SlackExtra {
  const {
    team = workspaceId,
    user,
    recipientTeam,
    responseUrl,
    isOnEphemeral,
    activeThread,
    lookingAt,
    actionToken,
    isFromHome,
  } = extra;
  if (team === undefined) throw new TypeError(`The address on ${platform} has no workspace.`);
  return {
    team,
    ...(user !== undefined && { user }),
    ...(recipientTeam !== undefined && { recipientTeam }),
    ...(responseUrl !== undefined && { responseUrl }),
    ...(isOnEphemeral === "true" && { isOnEphemeral }),
    ...(activeThread !== undefined && { activeThread }),
    ...(lookingAt !== undefined && { lookingAt }),
    ...(actionToken !== undefined && { actionToken }),
    ...(isFromHome === "true" && { isFromHome }),
  };
}
