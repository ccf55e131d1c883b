import type { ReplyAddress } from "../../src/port/events.ts";

/** `extra` of a Slack address. */
export interface SlackExtra {
  /** The workspace whose token writes there. */
  team: string;
  /** The person the reply is for: `chat.startStream` requires it in channels. */
  user?: string;
  /** The workspace that person is of; another one in channels that are shared between organisations. */
  recipientTeam?: string;
  /**
   * Takes answers to a command or a button: five within half an hour.
   * https://docs.slack.dev/interactivity/handling-user-interaction
   */
  responseUrl?: string;
  /**
   * The thread with replies in which it was asked: Slack shows what one person sees in no other.
   * https://docs.slack.dev/reference/methods/chat.postEphemeral
   */
  activeThread?: string;
  /** When a command or a button came, Unix milliseconds of this machine. A message has the time that Slack gave it. */
  cameAt?: string;
  /** The channel that the person looks at beside their conversation with the bot. */
  lookingAt?: string;
  /** Asked on the person's home tab, which is drawn again after the answer. */
  isFromHome?: "true";
}

/** Reads the extra fields of an address. Throws for one that is not Slack's. */
export function readExtra({ extra = {}, platform }: ReplyAddress): SlackExtra {
  const { team, user, recipientTeam, responseUrl, activeThread, cameAt, lookingAt, isFromHome } = extra;
  if (team === undefined) throw new TypeError(`An address on ${platform} names no workspace.`);
  return {
    team,
    ...(user !== undefined && { user }),
    ...(recipientTeam !== undefined && { recipientTeam }),
    ...(responseUrl !== undefined && { responseUrl }),
    ...(activeThread !== undefined && { activeThread }),
    ...(cameAt !== undefined && { cameAt }),
    ...(lookingAt !== undefined && { lookingAt }),
    ...(isFromHome === "true" && { isFromHome }),
  };
}
