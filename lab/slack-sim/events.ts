import type { AppIdentity, EventContext } from "./core.ts";
import type { Delivery, Dispatcher } from "./delivery.ts";
import { type Dialect, toToldEvent } from "./dialect.ts";
import { textOf } from "./shown-text.ts";
import { channelType, type Json, type Workspace } from "./world.ts";

export const DEFAULT_EVENTS = [
  "app_home_opened",
  "app_context_changed",
  "app_mention",
  "app_uninstalled",
  "agent_session_stopped",
  "message.channels",
  "message.groups",
  "message.im",
  "message.mpim",
  "team_access_revoked",
  "tokens_revoked",
];

const MESSAGE_EVENTS: Readonly<Record<string, string>> = {
  channel: "message.channels",
  group: "message.groups",
  im: "message.im",
  mpim: "message.mpim",
};

export interface EventsDeps {
  app: AppIdentity;
  dispatcher: Dispatcher;
  newId(prefix: string): string;
  now(): number;
  dialect: Dialect;
}

/** Wraps events as Slack does. Sends only events that the app has subscribed to and can see. */
export function createEvents({ app, dispatcher, newId, now, dialect }: EventsDeps) {
  function isWanted(event: Json, { id, bot, organisation }: Workspace, { channel }: EventContext): boolean {
    const isMessage = event["type"] === "message" && channel !== undefined;
    const name = isMessage ? MESSAGE_EVENTS[channelType(channel)] : String(event["type"]);
    const isGranted = organisation === undefined || organisation.granted.has(id);
    return isGranted && app.events.has(name ?? "") && (channel === undefined || channel.members.has(bot.id));
  }

  function toPayload(workspace: Workspace, event: Json, { channel, isOrgWide }: EventContext): Json {
    const { bot, organisation } = workspace;
    const id = isOrgWide ? null : workspace.id;
    const authorization = {
      enterprise_id: organisation?.id ?? null,
      team_id: id,
      user_id: bot.id,
      is_bot: true,
      is_enterprise_install: organisation !== undefined,
    };
    return {
      token: "verification-token",
      team_id: id,
      ...(organisation && { enterprise_id: organisation.id }),
      context_team_id: id,
      context_enterprise_id: organisation?.id ?? null,
      api_app_id: app.id,
      event,
      type: "event_callback",
      event_id: newId("Ev"),
      event_time: Math.floor(now() / 1000),
      event_context: newId("4-"),
      authorizations: [authorization],
      is_ext_shared_channel: channel?.isShared ?? false,
    };
  }

  return {
    emit(workspace: Workspace, event: Json, about: EventContext = {}): Delivery | undefined {
      if (!isWanted(event, workspace, about)) return undefined;
      const name = [textOf(event["type"]), textOf(event["subtype"])].filter((part) => part !== "").join("/");
      return dispatcher.deliver("events_api", name, toToldEvent(toPayload(workspace, event, about), dialect));
    },
    /** Returns an envelope without an event, which tells the app that Slack dropped deliveries. */
    limitReached(workspace: Workspace): Delivery {
      const minute = Math.floor(now() / 60_000) * 60;
      return dispatcher.deliver("events_api", "app_rate_limited", {
        token: "verification-token",
        type: "app_rate_limited",
        team_id: workspace.id,
        minute_rate_limited: minute,
        api_app_id: app.id,
      });
    },
  };
}
