import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { IsListening } from "../../../src/port/catalogue.ts";
import type { DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import { toDeletionKey } from "../../../src/port/ids.ts";
import { type Body, readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import { firstMention } from "../people/wording.ts";
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
  toMessageEvent,
} from "./inbound.ts";
import type { OtherBots } from "./other-bots.ts";
import type { TitleThread } from "./titles.ts";

/** A message that comes to concern the bot by an edit is answered when it is no older than this. */
const FRESH_MS = 15 * 60_000;
const MAX_KNOWN = 5_000;

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

/**
 * Takes `message` and `app_mention` events. Resolves when the resulting events were accepted, or there are none.
 * Rejects when one could not be accepted.
 */
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

/** Undefined for an event that certainly does not concern the bot. */
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
      // A deleted message that has a thread leaves a tombstone in its place.
      if (message["subtype"] === "tombstone" && ts !== undefined) {
        return async () => toDeletedEvents(before, ts, place, workspace, context);
      }
      const after = readSlackMessage(message, place, workspace);
      return after && (() => toEditEvents(event, before, after, context));
    }
    case undefined:
    default: {
      // Slack mentions the bot once more when a message is edited, which the change of the message tells too.
      if (event["type"] === "app_mention" && event["edited"] !== undefined) return undefined;
      const message = readSlackMessage(event, place, workspace);
      return message && (() => toMessageEvents(message, context));
    }
  }
}

/** The message that was changed or deleted. "untold" where Slack, which need not, does not show it. */
type Before = SlackMessage | "untold" | undefined;

function toBefore(event: Body, place: EventChannel, workspace: Workspace): Before {
  const message = event["previous_message"];
  return message === undefined || message === null ? "untold" : readSlackMessage(toBody(message), place, workspace);
}

async function toMessageEvents(message: SlackMessage, context: Context): Promise<InboundEvent[]> {
  const latest = context.known.latest(messageIdOf(message), message);
  const addressed = latest && (await addressedOf(latest, context));
  if (latest === undefined || addressed === undefined || !context.otherBots.mayAsk(latest)) return [];
  // The edit that overtook it and made it a message to the bot asks for itself.
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
  // Slack reports a change also for a preview, for a first reply, and for content that the bot may not see.
  if (before === "untold" ? editedTs === undefined : before && toBodyKey(before) === toBodyKey(after)) return [];
  const messageId = messageIdOf(after);
  const latest = context.known.latest(messageId, after);
  // An edit that was not acknowledged is told again, perhaps after a later one.
  if (latest === undefined || Number(editedTsOf(latest)) > Number(editedTsOf(after))) return [];
  context.known.setEdited(messageId, after);
  const isFresh = timeOf(after.ts) >= context.now() - FRESH_MS;
  const isAsked = isFresh && (await addressedOf(after, context)) === "bot";
  const wasAddressed = before === "untold" || before === undefined ? undefined : await addressedOf(before, context);
  // Slack may leave out the former text. The claim of the message's key decides whether it was taken already.
  const asked = wasAddressed === undefined && isFresh ? await toMessageEvents(after, context) : [];
  if (!context.otherBots.isAllowed(after) || (wasAddressed === undefined && before !== "untold")) return asked;
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
  if (before === "untold") return [{ ...event, ...toUnknown(messageId, channelId, workspace) }];
  if (before === undefined || (await addressedOf(before, context)) === undefined) return [];
  return [{ ...(await toBase(before, context)), ...event }];
}

/**
 * The addressee of a message. In a channel where the bot listens to everything, people's messages to nobody are meant
 * for it; other bots still have to mention it, or two bots would never end.
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

/** Stands in for a message that Slack does not show: its id tells the conversation. */
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

/** Remembers recent edits and deletions, which may overtake their message on another connection or be repeated. */
export interface KnownMessages {
  setEdited(messageId: string, message: SlackMessage): void;
  setDeleted(messageId: string): void;
  /** The latest known version of a message: itself, a later edit, or undefined once it was deleted. */
  latest(messageId: string, message: SlackMessage): SlackMessage | undefined;
}

export function createKnownMessages(): KnownMessages {
  /** Undefined for a message that was deleted. */
  const known = new BoundedMap<string, SlackMessage | undefined>(MAX_KNOWN);

  return {
    setEdited(messageId, message) {
      // A deleted message stays deleted.
      if (!known.has(messageId) || known.get(messageId) !== undefined) known.set(messageId, message);
    },
    setDeleted: (messageId) => void known.set(messageId, undefined),
    latest: (messageId, message) => (known.has(messageId) ? known.get(messageId) : message),
  };
}
