import type { Logger } from "pino";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { IsListening } from "../../../src/port/catalogue.ts";
import type { DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import { toDeletionKey } from "../../../src/port/ids.ts";
import { toTitle } from "../../../src/text/title.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, isNoAgent } from "../api/error.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { Delivery } from "./delivery.ts";
import {
  type EventChannel,
  type InboundDeps,
  messageIdOf,
  readSlackMessage,
  SLACKBOT,
  type SlackMessage,
  toAddressed,
  toBase,
  toBodyKey,
  toContent,
  toConversationId,
  toMessageEvent,
} from "./inbound.ts";
import { firstMention } from "./wording.ts";

/** An edit can turn a message into a question. The bot answers it only if the message is younger than this. */
const FRESH_MS = 15 * 60_000;
const MAX_KNOWN = 5_000;
/** In each conversation, the bot answers at most this many questions from bots until a person writes there. */
const MAX_IN_A_ROW = 3;
const MAX_AN_HOUR = 20;
const HOUR_MS = 60 * 60_000;
const MAX_KEPT = 2_000;
const TITLE_MS = 5_000;
const MAX_TITLE_CHARS = 60;

export interface ListenerDeps extends InboundDeps {
  otherBots: OtherBots;
  delivery: Pick<Delivery, "enqueue">;
  isListening?: IsListening | undefined;
  titleThread?: TitleThread;
  now(): number;
}

interface Context extends ListenerDeps {
  known: KnownMessages;
}

/** Resolves when all events of a `message` or `app_mention` are accepted. Rejects if one was not accepted. */
export type Listener = (event: Body, workspace: Workspace) => Promise<void>;

export function createListener(deps: ListenerDeps): Listener {
  const context: Context = { ...deps, known: createKnownMessages() };

  return async (event, workspace) => {
    const channelId = readText(event["channel"]);
    if (channelId === undefined) return;
    const place: EventChannel = { channelId, channelType: readText(event["channel_type"]) };
    const toEvents = toTask(event, place, workspace, context);
    if (toEvents !== undefined) await deps.delivery.enqueue(`${workspace.teamId} ${channelId}`, toEvents);
  };
}

/** Undefined if the event cannot concern the bot. */
function toTask(
  event: Body,
  place: EventChannel,
  workspace: Workspace,
  context: Context,
): (() => Promise<InboundEvent[]>) | undefined {
  const before = toBefore(event, place, workspace);
  switch (readText(event["subtype"])) {
    case "message_deleted": {
      const ts = readText(event["deleted_ts"]);
      return ts === undefined ? undefined : async () => toDeletedEvents(before, ts, place, workspace, context);
    }
    case "message_changed": {
      const message = toBody(event["message"]);
      const ts = readText(message["ts"]);
      // Slack replaces a deleted message that has a thread with a tombstone.
      if (message["subtype"] === "tombstone" && ts !== undefined) {
        return async () => toDeletedEvents(before, ts, place, workspace, context);
      }
      const after = readSlackMessage(message, place, workspace);
      return after && (() => toEditEvents(event, before, after, context));
    }
    case undefined:
    default: {
      // Ignores the mention in an edited message: Slack sends it again, but the change event covers it.
      if (event["type"] === "app_mention" && event["edited"] !== undefined) return undefined;
      const message = readSlackMessage(event, place, workspace);
      return message && (() => toMessageEvents(message, context));
    }
  }
}

/** The message before its change or deletion; "unknown" if Slack omits it. */
type Before = SlackMessage | "unknown" | undefined;

function toBefore(event: Body, place: EventChannel, workspace: Workspace): Before {
  const message = event["previous_message"];
  return message === undefined || message === null ? "unknown" : readSlackMessage(toBody(message), place, workspace);
}

async function toMessageEvents(message: SlackMessage, context: Context): Promise<InboundEvent[]> {
  const latest = context.known.latest(messageIdOf(message), message);
  const addressed = latest && (await addressedOf(latest, context));
  if (latest === undefined || addressed === undefined || !context.otherBots.mayAsk(latest)) return [];
  // Only a later edit addressed this message to the bot, and the handler of that edit asks the question.
  if (addressed === "bot" && (await addressedOf(message, context)) !== "bot") return [];
  const event = await toMessageEvent(latest, addressed, context);
  if (event !== undefined) context.titleThread?.(latest, event.text);
  return event === undefined ? [] : [event];
}

async function toEditEvents(
  event: Body,
  before: Before,
  after: SlackMessage,
  context: Context,
): Promise<InboundEvent[]> {
  const editedTs = editedTsOf(after);
  // Slack also reports a change for a preview, a first reply, and content that the bot cannot see.
  if (before === "unknown" ? editedTs === undefined : before && toBodyKey(before) === toBodyKey(after)) return [];
  const messageId = messageIdOf(after);
  const latest = context.known.latest(messageId, after);
  // Ignores an older edit, which Slack repeats if it was not acknowledged.
  if (latest === undefined || Number(editedTsOf(latest)) > Number(editedTsOf(after))) return [];
  context.known.setEdited(messageId, after);
  const isFresh = timeOf(after.ts) >= context.now() - FRESH_MS;
  const isAsked = isFresh && (await addressedOf(after, context)) === "bot";
  const wasAddressed = before === "unknown" || before === undefined ? undefined : await addressedOf(before, context);
  // Slack can omit the previous text. Then the claim on the message's key shows whether the message was answered.
  const asked = wasAddressed === undefined && isFresh ? await toMessageEvents(after, context) : [];
  if (!context.otherBots.isAllowed(after) || (wasAddressed === undefined && before !== "unknown")) return asked;
  const [base, content] = await Promise.all([toBase(after, context), toContent(after, context)]);
  const edited: EditedEvent = {
    kind: "edited",
    key: `${messageId}:edit:${editedTs ?? readText(event["event_ts"]) ?? ""}`,
    ...base,
    ...content,
    messageId,
    at: context.now(),
    ...(isAsked && wasAddressed !== "bot" && { addressed: "bot" }),
  };
  return [...asked, edited];
}

function editedTsOf({ raw }: SlackMessage): string | undefined {
  return readText(toBody(raw["edited"])["ts"]);
}

async function toDeletedEvents(
  before: Before,
  ts: string,
  { channelId }: EventChannel,
  workspace: Workspace,
  context: Context,
): Promise<DeletedEvent[]> {
  const { teamId } = workspace;
  const messageId = toMessageId({ teamId, channelId, ts });
  context.known.setDeleted(messageId);
  const event = { kind: "deleted", key: toDeletionKey(messageId), messageId, at: context.now() } as const;
  if (before === "unknown") return [{ ...event, ...toUnknown(messageId, channelId, workspace) }];
  if (before === undefined || (await addressedOf(before, context)) === undefined) return [];
  return [{ ...(await toBase(before, context)), ...event }];
}

/**
 * In a channel where the bot listens to everything, people's messages that address no one are for the bot too. Other
 * bots must still mention it: otherwise two bots would answer each other forever.
 */
async function addressedOf(
  message: SlackMessage,
  { isListening }: Pick<Context, "isListening">,
): Promise<MessageEvent["addressed"] | undefined> {
  const { workspace, channelId, isBot, threadTs, text } = message;
  const addressed = toAddressed(message);
  const mayBeOurs = addressed === undefined && !isBot && threadTs === undefined && firstMention(text) === undefined;
  if (!mayBeOurs) return addressed;
  const isOurs = await isListening?.({ platform: PLATFORM, workspaceId: workspace.teamId, channelId });
  return isOurs === true ? "bot" : undefined;
}

/** Replaces a message that Slack does not show. Its id identifies the conversation. */
function toUnknown(
  messageId: string,
  channelId: string,
  { teamId }: Workspace,
): Pick<DeletedEvent, "conversationId" | "author" | "reply"> {
  return {
    conversationId: messageId,
    author: { id: SLACKBOT, name: "Slack" },
    reply: { platform: PLATFORM, channelId, workspaceId: teamId, extra: { team: teamId } },
  };
}

/** Remembers recent edits and deletions, which can be repeated, and can arrive before their message. */
export interface KnownMessages {
  setEdited(messageId: string, message: SlackMessage): void;
  setDeleted(messageId: string): void;
  /** The latest known version of a message: the message itself or a later edit. Undefined after a deletion. */
  latest(messageId: string, message: SlackMessage): SlackMessage | undefined;
}

export function createKnownMessages(): KnownMessages {
  const known = new BoundedMap<string, SlackMessage | undefined>(MAX_KNOWN);

  return {
    setEdited: (messageId, message) => void known.set(messageId, message),
    setDeleted: (messageId) => void known.set(messageId, undefined),
    latest: (messageId, message) => (known.has(messageId) ? known.get(messageId) : message),
  };
}

export interface OtherBots {
  /** True for people, and for a bot on the list. */
  isAllowed(message: SlackMessage): boolean;
  /** Like `isAllowed`, for a question. Also counts the question, so that two bots soon stop answering each other. */
  mayAsk(message: SlackMessage): boolean;
}

/** `allowed` contains user ids or bot ids. */
export function createOtherBots(allowed: readonly string[], now: () => number): OtherBots {
  /** The times of bots' questions since a person last wrote, by conversation and then by the message's `ts`. */
  const inARow = new BoundedMap<string, Map<string, number>>(MAX_KEPT);
  /** The times of a bot's questions in the last hour, by channel and bot, and then by the message's `ts`. */
  const ofLate = new BoundedMap<string, Map<string, number>>(MAX_KEPT);

  function isAllowed({ isBot, userId, raw }: SlackMessage): boolean {
    return !isBot || allowed.includes(userId) || allowed.includes(String(raw["bot_id"]));
  }

  return {
    isAllowed,
    mayAsk(message) {
      const conversation = toConversationId(message);
      if (!message.isBot) inARow.delete(conversation);
      if (!message.isBot || !isAllowed(message)) return !message.isBot;
      const row = note(inARow, conversation, message.ts, now());
      const recent = note(ofLate, `${message.channelId} ${message.userId}`, message.ts, now());
      for (const [ts, atMs] of recent) if (atMs < now() - HOUR_MS) recent.delete(ts);
      return row.size <= MAX_IN_A_ROW && recent.size <= MAX_AN_HOUR;
    },
  };
}

/** Counts a message that is delivered twice only once. */
function note(kept: Map<string, Map<string, number>>, key: string, ts: string, atMs: number): Map<string, number> {
  const asked = kept.get(key) ?? new Map<string, number>();
  asked.set(ts, asked.get(ts) ?? atMs);
  kept.set(key, asked);
  return asked;
}

/** Sets a thread's title in the pane from its first question. Works in the background and ignores failures. */
export type TitleThread = (message: SlackMessage, question: string) => void;

export interface TitlesDeps {
  api: Pick<SlackApi, "call">;
  log: Logger;
}

export function createTitleThread({ api, log }: TitlesDeps): TitleThread {
  const withoutAgents = new Set<string>();

  async function set({ workspace: { teamId }, channelId, ts }: SlackMessage, title: string): Promise<void> {
    try {
      const args = { channel_id: channelId, thread_ts: ts, title };
      await api.call(teamId, "assistant.threads.setTitle", args, AbortSignal.timeout(TITLE_MS));
    } catch (error) {
      if (isNoAgent(error)) withoutAgents.add(teamId);
      log.info({ code: codeOf(error), team: teamId }, "Could not set the title of a thread.");
    }
  }

  return (message, question) => {
    // In the pane, each message at the top level starts a thread. A command is not a question.
    const begins = message.isDirect && message.threadTs === undefined && !question.startsWith("!");
    if (!begins || withoutAgents.has(message.workspace.teamId)) return;
    const title = toTitle(question, MAX_TITLE_CHARS);
    if (title !== "") void set(message, title);
  };
}
