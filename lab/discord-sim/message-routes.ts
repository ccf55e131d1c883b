import { type PlatformCounter, slidingCounter } from "../pacing/platform.ts";
import type { Access } from "./access.ts";
import type { BotMessages } from "./bot-messages.ts";
import { refuse, refuseForNow } from "./refusals.ts";
import { NO_CONTENT, ok, type Reply, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import type { Channel, Message, Payload } from "./world.ts";

const HOUR_MS = 3_600_000;
const MAX_PAGE = 100;

export function createMessageRoutes(simulation: Simulation, access: Access, messages: BotMessages): Route[] {
  const { clock, world, timeline, payloads, portal, rules, typing, changes } = simulation;
  const { bot } = world;
  const oldEdits = new Map<string, PlatformCounter>();
  const toPayload = (message: Message): Payload => payloads.toMessage(message, portal.messageContent);

  function checkSlowmode(channel: Channel): void {
    if (channel.slowmodeSeconds === 0 || world.can(bot.id, channel, "BypassSlowmode")) return;
    const last = [...channel.messages.values()].findLast(({ author }) => author === bot);
    const waitMs = (last?.states[0]?.atMs ?? -Infinity) + channel.slowmodeSeconds * 1000 - clock.now();
    const message = "This action cannot be performed due to slowmode rate limit";
    if (waitMs > 0) throw refuseForNow(20016, message, waitMs);
  }

  function checkAge(message: Message): void {
    if (clock.now() - (message.states[0]?.atMs ?? 0) < HOUR_MS) return;
    const counter = oldEdits.get(message.channelId) ?? slidingCounter(rules.oldMessageEdits, HOUR_MS);
    oldEdits.set(message.channelId, counter);
    if (!counter.take(clock.now()).ok) throw refuse("old-message-edits");
  }

  function list(channel: Channel, query: URLSearchParams): Reply {
    if (!world.can(bot.id, channel, "ReadMessageHistory")) return ok([]);
    const visible = [...channel.messages.values()]
      .filter(({ deletedAtMs, ephemeralFor }) => deletedAtMs === undefined && ephemeralFor === undefined)
      .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    return ok(pageOf(visible, query).map(toPayload));
  }

  return [
    {
      route: "POST /channels/:channel/messages",
      access: "bot",
      handle({ params, body }) {
        const channel = access.channel(params["channel"]);
        access.requirePostable(channel);
        if (body.files.length > 0) access.require(channel, "AttachFiles");
        checkSlowmode(channel);
        const message = messages.post(channel, body);
        timeline.wake(channel);
        return ok(toPayload(message));
      },
    },
    {
      route: "PATCH /channels/:channel/messages/:message",
      access: "bot",
      handle({ params, body }) {
        const channel = access.channel(params["channel"]);
        const message = access.message(channel, params["message"]);
        if (message.author !== bot) throw refuse("foreign-message");
        access.requireOpen(channel);
        checkAge(message);
        messages.edit(message, body);
        return ok(toPayload(message));
      },
    },
    {
      route: "DELETE /channels/:channel/messages/:message",
      access: "bot",
      handle({ params }) {
        const channel = access.channel(params["channel"]);
        const message = access.message(channel, params["message"]);
        if (message.author !== bot) access.require(channel, "ManageMessages");
        access.requireOpen(channel);
        timeline.remove(message);
        return NO_CONTENT;
      },
    },
    {
      route: "GET /channels/:channel/messages",
      access: "bot",
      handle: ({ params, query }) => list(access.channel(params["channel"]), query),
    },
    {
      route: "GET /channels/:channel/messages/:message",
      access: "bot",
      handle({ params }) {
        const channel = access.channel(params["channel"]);
        access.require(channel, "ReadMessageHistory");
        return ok(toPayload(access.message(channel, params["message"])));
      },
    },
    {
      route: "POST /channels/:channel/typing",
      access: "bot",
      handle({ params }) {
        const channel = access.channel(params["channel"]);
        access.requirePostable(channel);
        typing.push({ channelId: channel.id, atMs: clock.now() });
        changes.changed();
        return NO_CONTENT;
      },
    },
  ];
}

/** Returns the messages `before`, `after` or `around` an id, newest first, as Discord does. */
function pageOf(messages: readonly Message[], query: URLSearchParams): Message[] {
  const limit = Math.min(MAX_PAGE, Math.max(1, Number(query.get("limit") ?? 50)));
  const bound = (name: string) => BigInt(query.get(name) ?? "0");
  if (query.has("after")) {
    return messages
      .filter(({ id }) => BigInt(id) > bound("after"))
      .slice(0, limit)
      .toReversed();
  }
  if (query.has("before")) {
    return messages
      .filter(({ id }) => BigInt(id) < bound("before"))
      .slice(-limit)
      .toReversed();
  }
  if (query.has("around")) {
    const at = messages.findIndex(({ id }) => BigInt(id) >= bound("around"));
    const first = Math.max(0, at - Math.floor(limit / 2));
    return messages.slice(first, first + limit).toReversed();
  }
  return messages.slice(-limit).toReversed();
}
