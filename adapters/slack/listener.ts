import type { DeletedEvent, EditedEvent, InboundEvent } from "../../src/adapter.ts";
import type { Delivery } from "./delivery.ts";
import { timeOf, toMessageId } from "./ids.ts";
import {
  type InboundDeps,
  messageIdOf,
  type Place,
  readSaid,
  type Said,
  toAddressed,
  toBase,
  toBodyKey,
  toContent,
  toMessageEvent,
} from "./inbound.ts";
import { createKnownMessages, type KnownMessages } from "./known-messages.ts";
import type { OtherBots } from "./other-bots.ts";
import type { Body } from "./surfaces.ts";
import { readText, toBody } from "./wire.ts";
import type { Workspace } from "./workspaces.ts";

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
  const before = () => readSaid(toBody(event["previous_message"]), place, workspace);
  switch (readText(event["subtype"])) {
    case "message_deleted": {
      const ts = readText(event["deleted_ts"]);
      return ts === undefined ? undefined : async () => toDeletedEvents(before(), ts, place, workspace, hearing);
    }
    case "message_changed": {
      const message = toBody(event["message"]);
      const ts = readText(message["ts"]);
      // The first message of a thread leaves a stone in its place.
      if (message["subtype"] === "tombstone" && ts !== undefined) {
        return async () => toDeletedEvents(before(), ts, place, workspace, hearing);
      }
      const after = readSaid(message, place, workspace);
      return after && (() => toEditEvents(event, before(), after, hearing));
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

async function toSaidEvents(said: Said, hearing: Hearing): Promise<InboundEvent[]> {
  const latest = hearing.known.latest(messageIdOf(said), said);
  const addressed = latest && toAddressed(latest);
  if (latest === undefined || addressed === undefined || !hearing.otherBots.mayAsk(latest)) return [];
  const event = await toMessageEvent(latest, addressed, hearing);
  return event === undefined ? [] : [event];
}

async function toEditEvents(
  event: Body,
  before: Said | undefined,
  after: Said,
  hearing: Hearing,
): Promise<InboundEvent[]> {
  // Slack tells of a change also for a preview, for a first reply, and for what the bot itself may not see.
  if (before !== undefined && toBodyKey(before) === toBodyKey(after)) return [];
  const messageId = messageIdOf(after);
  hearing.known.setEdited(messageId, after);
  const wasOurs = before !== undefined && toAddressed(before) !== undefined;
  if (!wasOurs && (toAddressed(after) === undefined || timeOf(after.ts) < hearing.now() - FRESH_MS)) return [];
  if (!wasOurs) return toSaidEvents(after, hearing);
  if (!hearing.otherBots.isAllowed(after)) return [];
  const [base, content] = await Promise.all([toBase(after, hearing), toContent(after, hearing)]);
  const stamp = readText(toBody(after.raw["edited"])["ts"]) ?? readText(event["event_ts"]) ?? "";
  const edited: EditedEvent = {
    kind: "edited",
    key: `${messageId}:edit:${stamp}`,
    ...base,
    ...content,
    messageId,
    at: hearing.now(),
  };
  return [edited];
}

async function toDeletedEvents(
  before: Said | undefined,
  ts: string,
  { channelId }: Place,
  workspace: Workspace,
  hearing: Hearing,
): Promise<DeletedEvent[]> {
  const { teamId } = workspace;
  const messageId = toMessageId({ teamId, channelId, ts });
  hearing.known.setDeleted(messageId);
  if (before === undefined || toAddressed(before) === undefined) return [];
  const base = await toBase(before, hearing);
  return [{ kind: "deleted", key: `${messageId}:deleted`, ...base, messageId, at: hearing.now() }];
}
