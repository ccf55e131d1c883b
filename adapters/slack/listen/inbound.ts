import type { AttachmentRef, EditedEvent, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import type { Body } from "../api/wire.ts";
import { readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { People } from "../people/people.ts";
import { firstMention, mentions, readForwarded, readWords } from "../people/wording.ts";

/** What a message that somebody wrote may be called; all others are told by Slack itself. */
const WRITTEN = new Set([undefined, "file_share", "thread_broadcast", "me_message", "bot_message"]);
/** Slack itself, as the author of a message. */
export const SLACKBOT = "USLACKBOT";

/** A message that somebody wrote, as Slack tells of it. */
export interface Said {
  workspace: Workspace;
  channelId: string;
  isDirect: boolean;
  /** A direct conversation of several people. */
  isGroup: boolean;
  ts: string;
  /** Undefined for a message at the top level. */
  threadTs: string | undefined;
  userId: string;
  /** What Slack calls the author beside the id. */
  userName: string | undefined;
  /** The workspace the author is of. */
  userTeam: string;
  /** Not by a person. */
  isBot: boolean;
  text: string;
  /** The whole message, for what is read of it late. */
  raw: Body;
}

export interface Place {
  channelId: string;
  /** `im`, `mpim`, `channel`, `group`; absent from mentions, which channels alone have. */
  channelType: string | undefined;
}

export interface InboundDeps {
  people: People;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
}

/** Undefined for what nobody wrote, and for what this bot wrote itself. */
export function readSaid(raw: Body, { channelId, channelType }: Place, workspace: Workspace): Said | undefined {
  const [ts, text, threadTs] = [raw["ts"], raw["text"], raw["thread_ts"]].map(readText);
  const botId = readText(raw["bot_id"]);
  const userId = readText(raw["user"]) ?? botId;
  if (ts === undefined || userId === undefined || !WRITTEN.has(readText(raw["subtype"]))) return undefined;
  if ([workspace.botUserId, SLACKBOT].includes(userId) || botId === workspace.botId) return undefined;
  return {
    workspace,
    channelId,
    isDirect: channelType === "im" || channelType === "app_home" || channelId.startsWith("D"),
    isGroup: channelType === "mpim",
    ts,
    threadTs: threadTs === ts ? undefined : threadTs,
    userId,
    userName: readText(toBody(raw["bot_profile"])["name"]) ?? readText(raw["username"]),
    userTeam: readText(raw["user_team"]) ?? readText(raw["source_team"]) ?? workspace.teamId,
    isBot: botId !== undefined || raw["subtype"] === "bot_message",
    text: text ?? "",
    raw,
  };
}

/**
 * To whom a message is said, as far as it is the bot's business; undefined where it is not. A channel belongs to
 * people: there only those who mention the bot are heard, and a bot even in threads and in private.
 */
export function toAddressed(said: Said): MessageEvent["addressed"] | undefined {
  const { workspace, text, isBot, isDirect, threadTs } = said;
  if (mentions(text, workspace.botUserId)) return "bot";
  if (isBot) return undefined;
  if (isDirect) return "bot";
  if (threadTs === undefined) return undefined;
  return firstMention(text) === undefined ? "open" : "other";
}

/** The same for the same words and files, however Slack shows them. */
export function toBodyKey({ text, raw }: Said): string {
  return JSON.stringify([text, toBodies(raw["files"]).map(({ id }) => id)]);
}

export function messageIdOf({ workspace, channelId, ts }: Said): string {
  return toMessageId({ teamId: workspace.teamId, channelId, ts });
}

/** The words and files of a message, whole. */
export async function toContent(said: Said, deps: InboundDeps): Promise<Pick<EditedEvent, "text" | "attachments">> {
  const { workspace, raw } = said;
  const [words, forwarded] = await Promise.all([
    readWords(said.text, workspace, deps.people),
    readForwarded(raw, workspace, deps.people),
  ]);
  return {
    text: [words, forwarded].filter(Boolean).join("\n\n"),
    attachments: deps.toAttachments(workspace, toBodies(raw["files"])),
  };
}

/** Undefined for a message with nothing in it. Both events that Slack sends of a mention become the same one. */
export async function toMessageEvent(
  said: Said,
  addressed: MessageEvent["addressed"],
  deps: InboundDeps,
): Promise<MessageEvent | undefined> {
  const [content, base] = await Promise.all([toContent(said, deps), toBase(said, deps)]);
  if (content.text === "" && content.attachments.length === 0) return undefined;
  const messageId = messageIdOf(said);
  return { kind: "message", key: messageId, ...base, messageId, ...content, addressed };
}

/** Where and by whom, as every event of a message has it. */
export async function toBase(
  said: Said,
  { people }: Pick<InboundDeps, "people">,
): Promise<Pick<MessageEvent, "conversationId" | "author" | "reply" | "at">> {
  const { workspace, channelId, userId, userName, userTeam, isDirect, isGroup, ts } = said;
  const given = { name: userName, channelId, isDirect: isDirect || isGroup, team: userTeam };
  return {
    conversationId: toConversationId(said),
    author: await people.toAuthor(workspace, userId, given),
    reply: toReply(said),
    at: Math.floor(timeOf(ts)),
  };
}

/** A thread is a conversation, and a message at the top level begins one. */
export function toConversationId({ workspace, channelId, threadTs, ts }: Said): string {
  return [PLATFORM, workspace.teamId, channelId, threadTs ?? ts].join(":");
}

function toReply(said: Said): ReplyAddress {
  const { workspace, channelId, threadTs, ts, userId, userTeam } = said;
  const extra: SlackExtra = { team: workspace.teamId, user: userId, recipientTeam: userTeam };
  return {
    platform: PLATFORM,
    channelId,
    workspaceId: workspace.teamId,
    threadId: threadTs ?? ts,
    replyToId: messageIdOf(said),
    extra: { ...extra },
  };
}
