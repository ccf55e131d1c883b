import { z } from "zod";
import type { Looking, Viewer } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, EditedEvent, EventBase, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { SlackExtra } from "../address.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId, toPersonId } from "../ids.ts";
import { readForwards, readShown, readWritten } from "./content.ts";
import type { People } from "./people.ts";
import { firstMention, mentions, readWords } from "./wording.ts";

/** The subtypes of messages from people or apps. Slack itself writes all other messages. */
const WRITTEN = new Set([undefined, "file_share", "thread_broadcast", "me_message", "bot_message"]);
export const SLACKBOT = "USLACKBOT";

export interface SlackMessage {
  workspace: Workspace;
  channelId: string;
  isDirect: boolean;
  isGroup: boolean;
  ts: string;
  /** Undefined for a message at the top level. */
  threadTs: string | undefined;
  userId: string;
  /** The author's name, if the event contains it. */
  userName: string | undefined;
  userTeam: string;
  isBot: boolean;
  isOwn: boolean;
  text: string;
  raw: Body;
}

export interface EventChannel {
  channelId: string;
  /** `im`, `mpim`, `channel` or `group`. A mention has none, because it comes only from channels. */
  channelType: string | undefined;
}

export interface InboundDeps {
  people: Pick<People, "toAuthor" | "person" | "channelName">;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
  looking?: Pick<Looking, "read">;
}

/** Undefined for Slack's own notices and for this bot's messages. */
export function readSlackMessage(raw: Body, place: EventChannel, workspace: Workspace): SlackMessage | undefined {
  const message = readAnyMessage(raw, place, workspace);
  return message?.isOwn ? undefined : message;
}

/** Undefined for Slack's own notices, for example about new members. */
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
 * Undefined if the message does not concern the bot. In a channel, people must mention the bot. Another bot must
 * mention it also in threads and direct messages.
 */
export function toAddressed(message: SlackMessage): MessageEvent["addressed"] | undefined {
  const { workspace, text, isBot, isDirect, threadTs } = message;
  if (mentions(text, workspace.botUserId)) return "bot";
  if (isBot) return undefined;
  if (isDirect) return "bot";
  if (threadTs === undefined) return undefined;
  return firstMention(text) === undefined ? "open" : "other";
}

/** Equal for equal words, tables and files, however Slack shows them. */
export function toBodyKey({ raw }: SlackMessage): string {
  return JSON.stringify([readWritten(raw), toBodies(raw["files"]).map(({ id }) => id)]);
}

export function messageIdOf({ workspace, channelId, ts }: SlackMessage): string {
  return toMessageId({ teamId: workspace.teamId, channelId, ts });
}

/** All words and files in a message. A question has no link previews, because Slack adds them later. */
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

/** Undefined for an empty message. Slack sends two events for a mention; both become the same event here. */
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

/** A thread is a conversation. A message at the top level starts one. */
export function toConversationId({ workspace, channelId, threadTs, ts }: SlackMessage): string {
  return [PLATFORM, workspace.teamId, channelId, threadTs ?? ts].join(":");
}

/**
 * In the agent view, the message names the channel that its author has open. In the older assistant, an event names it.
 */
async function findLookedAt(
  { workspace, threadTs, userId, isDirect, raw }: SlackMessage,
  looking: InboundDeps["looking"],
): Promise<string | undefined> {
  if (!isDirect) return undefined;
  const context = raw["app_context"] ?? undefined;
  return context === undefined ? looking?.read(toViewer(workspace, userId, threadTs)) : readLookedAt(context);
}

function toReply(message: SlackMessage, lookingAt: string | undefined): ReplyAddress {
  const { workspace, channelId, threadTs, ts, userId, userTeam, raw } = message;
  // https://docs.slack.dev/apis/web-api/real-time-search-api#action-token
  const actionToken = readText(raw["action_token"]) ?? readText(toBody(raw["assistant_thread"])["action_token"]);
  const extra: SlackExtra = {
    team: workspace.teamId,
    user: userId,
    recipientTeam: userTeam,
    ...(threadTs !== undefined && { activeThread: threadTs }),
    ...(lookingAt !== undefined && { lookingAt }),
    ...(actionToken !== undefined && { actionToken }),
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

export function toViewer(workspace: Workspace, userId: string, threadTs: string | undefined): Viewer {
  return {
    platform: PLATFORM,
    authorId: toPersonId(workspace, userId),
    ...(threadTs !== undefined && { threadId: threadTs }),
  };
}

const lookedAtContext = z.object({
  /** From the older assistant: https://docs.slack.dev/reference/events/assistant_thread_context_changed */
  channel_id: z.string().optional(),
  /** The most relevant entity comes first: https://docs.slack.dev/reference/events/app_context_changed */
  entities: z.array(z.object({ type: z.string(), value: z.unknown() })).default([]),
});

/** The id of the channel that a person has open. Undefined if the context contains no channel. */
export function readLookedAt(context: unknown): string | undefined {
  const { channel_id: channelId, entities = [] } = lookedAtContext.safeParse(context).data ?? {};
  const found = entities.map(({ type, value }) => {
    if (type === "slack#/types/channel_id") return value;
    return type === "slack#/types/message_context" ? toBody(value)["channel_id"] : undefined;
  });
  return [channelId, ...found].map(readText).find((id) => id !== undefined);
}
