import type { DeletedEvent, EditedEvent, InboundEvent } from "../../../src/port/events.ts";
import type { Body } from "../api/wire.ts";
import { readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { Delivery } from "./delivery.ts";
import {
  type InboundDeps,
  messageIdOf,
  type Place,
  readSaid,
  type Said,
  SLACKBOT,
  toAddressed,
  toBase,
  toBodyKey,
  toContent,
  toMessageEvent,
} from "./inbound.ts";
import { createKnownMessages, type KnownMessages } from "./known-messages.ts";
import type { OtherBots } from "./other-bots.ts";

/** A message that comes to concern the bot by an edit is answered when it is no older than this. */
const FRESH_MS = 15 * 60_000;

export interface ListenerDeps extends InboundDeps {
  otherBots: OtherBots;
  delivery: Pick<Delivery, "enqueue">;
  now(): number;
}

interface Hearing extends ListenerDeps {
  known: KnownMessages;
}

/**
 * Hears what happens to messages: `message` and `app_mention` events. Resolves when what they mean was taken over;
 * resolves also for what is none of the bot's business. Rejects when it could not be taken over.
 */
export type Listener = (event: Body, workspace: Workspace) => Promise<void>;

export function createListener(deps: ListenerDeps): Listener {
  const hearing: Hearing = { ...deps, known: createKnownMessages() };

  return async (event, workspace) => {
    const channelId = readText(event["channel"]);
    if (channelId === undefined) return;
    const place: Place = { channelId, channelType: readText(event["channel_type"]) };
    const toEvents = toReading(event, place, workspace, hearing);
    if (toEvents !== undefined) await deps.delivery.enqueue(`${workspace.teamId} ${channelId}`, toEvents);
  };
}

type Reading = () => Promise<InboundEvent[]>;

/** Undefined for what is none of the bot's business at first sight. */
function toReading(event: Body, place: Place, workspace: Workspace, hearing: Hearing): Reading | undefined {
  const before = toBefore(event, place, workspace);
  switch (readText(event["subtype"])) {
    case "message_deleted": {
      const ts = readText(event["deleted_ts"]);
      return ts === undefined ? undefined : async () => toDeletedEvents(before, ts, place, workspace, hearing);
    }
    case "message_changed": {
      const message = toBody(event["message"]);
      const ts = readText(message["ts"]);
      // The first message of a thread leaves a stone in its place.
      if (message["subtype"] === "tombstone" && ts !== undefined) {
        return async () => toDeletedEvents(before, ts, place, workspace, hearing);
      }
      const after = readSaid(message, place, workspace);
      return after && (() => toEditEvents(event, before, after, hearing));
    }
    case undefined:
    default: {
      // Slack mentions the bot once more when a message is edited, which the change of the message tells too.
      if (event["type"] === "app_mention" && event["edited"] !== undefined) return undefined;
      const said = readSaid(event, place, workspace);
      return said && (() => toSaidEvents(said, hearing));
    }
  }
}

/** The message that was changed or deleted. "untold" where Slack, which need not, does not show it. */
type Before = Said | "untold" | undefined;

function toBefore(event: Body, place: Place, workspace: Workspace): Before {
  const message = event["previous_message"];
  return message === undefined || message === null ? "untold" : readSaid(toBody(message), place, workspace);
}

async function toSaidEvents(said: Said, hearing: Hearing): Promise<InboundEvent[]> {
  const latest = hearing.known.latest(messageIdOf(said), said);
  const addressed = latest && toAddressed(latest);
  if (latest === undefined || addressed === undefined || !hearing.otherBots.mayAsk(latest)) return [];
  // The edit that overtook it and made it a message to the bot asks for itself.
  if (addressed === "bot" && toAddressed(said) !== "bot") return [];
  const event = await toMessageEvent(latest, addressed, hearing);
  return event === undefined ? [] : [event];
}

async function toEditEvents(event: Body, before: Before, after: Said, hearing: Hearing): Promise<InboundEvent[]> {
  const editedTs = readText(toBody(after.raw["edited"])["ts"]);
  // Slack tells of a change also for a preview, for a first reply, and for what the bot itself may not see.
  if (before === "untold" ? editedTs === undefined : before && toBodyKey(before) === toBodyKey(after)) return [];
  const messageId = messageIdOf(after);
  if (hearing.known.latest(messageId, after) === undefined) return [];
  hearing.known.setEdited(messageId, after);
  const isFresh = timeOf(after.ts) >= hearing.now() - FRESH_MS;
  const isAsked = isFresh && toAddressed(after) === "bot";
  const wasAddressed = before === "untold" || before === undefined ? undefined : toAddressed(before);
  // Whether a message whose past is not told was heard before is known to those who claim it.
  const said = wasAddressed === undefined && isFresh ? await toSaidEvents(after, hearing) : [];
  if (!hearing.otherBots.isAllowed(after) || (wasAddressed === undefined && before !== "untold")) return said;
  const [base, content] = await Promise.all([toBase(after, hearing), toContent(after, hearing)]);
  const edited: EditedEvent = {
    kind: "edited",
    key: `${messageId}:edit:${editedTs ?? readText(event["event_ts"]) ?? ""}`,
    ...base,
    ...content,
    messageId,
    at: hearing.now(),
    ...(isAsked && wasAddressed !== "bot" && { addressed: "bot" }),
  };
  return [...said, edited];
}

async function toDeletedEvents(
  before: Before,
  ts: string,
  { channelId }: Place,
  workspace: Workspace,
  hearing: Hearing,
): Promise<DeletedEvent[]> {
  const { teamId } = workspace;
  const messageId = toMessageId({ teamId, channelId, ts });
  hearing.known.setDeleted(messageId);
  const event = { kind: "deleted", key: `${messageId}:deleted`, messageId, at: hearing.now() } as const;
  if (before === "untold") return [{ ...event, ...toUnknown(messageId, channelId, workspace) }];
  if (before === undefined || toAddressed(before) === undefined) return [];
  return [{ ...(await toBase(before, hearing)), ...event }];
}

/** Of a message that Slack does not show: who knows its id knows its conversation. */
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
