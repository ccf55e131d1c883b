import type { Looking } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, EditedEvent, EventBase, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import { readForwards, readShown, readWritten } from "../people/content.ts";
import { readLookedAt, toViewer } from "../people/looking.ts";
import type { People } from "../people/people.ts";
import { firstMention, mentions, readWords } from "../people/wording.ts";

/** Subtypes of messages that somebody wrote; Slack itself writes all others. */
const WRITTEN = new Set([undefined, "file_share", "thread_broadcast", "me_message", "bot_message"]);
/** Slack itself, as the author of a message. */
export const SLACKBOT = "USLACKBOT";

/** A message that somebody wrote, as Slack tells of it. */
export interface SlackMessage {
  workspace: Workspace;
  channelId: string;
  isDirect: boolean;
  /** A direct conversation of several people. */
  isGroup: boolean;
  ts: string;
  /** Undefined for a message at the top level. */
  threadTs: string | undefined;
  userId: string;
  /** The author's name as the event has it. */
  userName: string | undefined;
  /** The workspace the author is of. */
  userTeam: string;
  /** Not by a person. */
  isBot: boolean;
  /** By this bot. */
  isOwn: boolean;
  text: string;
  /** The whole message, for fields that are read late. */
  raw: Body;
}

export interface EventChannel {
  channelId: string;
  /** `im`, `mpim`, `channel`, `group`; absent from mentions, which channels alone have. */
  channelType: string | undefined;
}

export interface InboundDeps {
  people: People;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
  looking?: Pick<Looking, "read">;
}

/** Undefined for Slack's own notices, and for this bot's own messages. */
export function readSlackMessage(raw: Body, place: EventChannel, workspace: Workspace): SlackMessage | undefined {
  const message = readAnyMessage(raw, place, workspace);
  return message?.isOwn ? undefined : message;
}

/** Undefined for Slack's own notices, such as that somebody joined. */
export function readAnyMessage(
  raw: Body,
  { channelId, channelType }: EventChannel,
  workspace: Workspace,
): SlackMessage | undefined {
  const [ts, text, threadTs] = [raw["ts"], raw["text"], raw["thread_ts"]].map(readText);
  const botId = readText(raw["bot_id"]);
  const userId = readText(raw["user"]) ?? botId;
  if (ts === undefined || userId === undefined || !WRITTEN.has(readText(raw["subtype"]))) return undefined;
  if (userId === SLACKBOT) return undefined;
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
    isOwn: userId === workspace.botUserId || (botId !== undefined && botId === workspace.botId),
    text: text ?? "",
    raw,
  };
}

/**
 * The addressee of a message; undefined for one that does not concern the bot. In a channel people have to mention the
 * bot. Another bot has to do so in threads and direct messages too.
 */
export function toAddressed(message: SlackMessage): MessageEvent["addressed"] | undefined {
  const { workspace, text, isBot, isDirect, threadTs } = message;
  if (mentions(text, workspace.botUserId)) return "bot";
  if (isBot) return undefined;
  if (isDirect) return "bot";
  if (threadTs === undefined) return undefined;
  return firstMention(text) === undefined ? "open" : "other";
}

/** The same for the same words, tables and files, however Slack shows them. */
export function toBodyKey({ raw }: SlackMessage): string {
  return JSON.stringify([readWritten(raw), toBodies(raw["files"]).map(({ id }) => id)]);
}

export function messageIdOf({ workspace, channelId, ts }: SlackMessage): string {
  return toMessageId({ teamId: workspace.teamId, channelId, ts });
}

/**
 * The words and files of a message, whole. Previews of links belong to a message that is only read, not to a question:
 * Slack adds them later.
 */
export async function toContent(
  message: SlackMessage,
  deps: InboundDeps,
  isAsked = !message.isBot,
): Promise<Pick<EditedEvent, "text" | "attachments">> {
  const { workspace, raw } = message;
  const shown = isAsked ? [readWritten(raw), readForwards(raw)] : [readShown(raw)];
  const words = await Promise.all(shown.map((part) => readWords(part, workspace, deps.people)));
  return {
    text: words.filter(Boolean).join("\n\n"),
    attachments: deps.toAttachments(workspace, toBodies(raw["files"])),
  };
}

/** Undefined for a message with nothing in it. Both events that Slack sends of a mention become the same one. */
export async function toMessageEvent(
  message: SlackMessage,
  addressed: MessageEvent["addressed"],
  deps: InboundDeps,
): Promise<MessageEvent | undefined> {
  const [content, base] = await Promise.all([toContent(message, deps), toBase(message, deps)]);
  if (content.text === "" && content.attachments.length === 0) return undefined;
  const messageId = messageIdOf(message);
  const isListenedTo = addressed === "bot" && toAddressed(message) === undefined;
  const heard = { messageId, ...content, addressed, ...(isListenedTo && { isListenedTo: true as const }) };
  return { kind: "message", key: messageId, ...base, ...heard };
}

/** The fields that all events of a message have. */
export async function toBase(
  message: SlackMessage,
  { people, looking }: Pick<InboundDeps, "people" | "looking">,
): Promise<Omit<EventBase, "key">> {
  const { workspace, channelId, userId, userName, userTeam, isDirect, isGroup, ts } = message;
  const given = { name: userName, channelId, isDirect: isDirect || isGroup, team: userTeam };
  return {
    conversationId: toConversationId(message),
    author: { ...(await people.toAuthor(workspace, userId, given)), ...(message.isBot && { kind: "bot" }) },
    reply: toReply(message, await findLookedAt(message, looking)),
    at: Math.floor(timeOf(ts)),
  };
}

/** A thread is a conversation, and a message at the top level begins one. */
export function toConversationId({ workspace, channelId, threadTs, ts }: SlackMessage): string {
  return [PLATFORM, workspace.teamId, channelId, threadTs ?? ts].join(":");
}

/** In the agent view a message says what its author looks at; in the older assistant an event of its own has said so. */
async function findLookedAt(
  { workspace, threadTs, userId, isDirect, raw }: SlackMessage,
  looking: InboundDeps["looking"],
): Promise<string | undefined> {
  if (!isDirect) return undefined;
  const context = raw["app_context"] ?? undefined;
  return context === undefined ? looking?.read(toViewer(workspace, userId, threadTs)) : readLookedAt(context);
}

function toReply(message: SlackMessage, lookingAt: string | undefined): ReplyAddress {
  const { workspace, channelId, threadTs, ts, userId, userTeam } = message;
  const extra: SlackExtra = {
    team: workspace.teamId,
    user: userId,
    recipientTeam: userTeam,
    ...(threadTs !== undefined && { activeThread: threadTs }),
    ...(lookingAt !== undefined && { lookingAt }),
  };
  return {
    platform: PLATFORM,
    channelId,
    workspaceId: workspace.teamId,
    threadId: threadTs ?? ts,
    ...((message.isDirect || message.isGroup) && { isDirect: true }),
    replyToId: messageIdOf(message),
    extra: { ...extra },
  };
}
