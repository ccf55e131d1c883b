import { z } from "zod";
import type { Access } from "./access.ts";
import type { BotMessages } from "./bot-messages.ts";
import { readForm } from "./message-body.ts";
import { toChannel, toThreadMember } from "./payloads.ts";
import { refuse } from "./refusals.ts";
import { type Call, NO_CONTENT, ok, type Reply, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import type { Threads } from "./threads.ts";
import type { Channel } from "./world.ts";

const PRIVATE = 12;
const NAME = z.string().min(1).max(100);
const MINUTES = z.union([z.literal(60), z.literal(1440), z.literal(4320), z.literal(10080)]);
const NEW_THREAD = z.object({
  name: NAME,
  auto_archive_duration: MINUTES.nullish(),
  type: z.number().nullish(),
  message: z.unknown().optional(),
});
const CHANGE = z.object({
  name: NAME.optional(),
  archived: z.boolean().optional(),
  locked: z.boolean().optional(),
  auto_archive_duration: MINUTES.optional(),
});

export function createThreadRoutes(
  { world, rules, payloads }: Simulation,
  access: Access,
  threads: Threads,
  messages: BotMessages,
): Route[] {
  const { bot } = world;

  function requireRoom({ guildId = "" }: Channel): void {
    if (threads.activeIn(guildId).length >= rules.maxActiveThreads) throw refuse("too-many-threads");
  }

  function openFromMessage({ params, body }: Call): Reply {
    const parent = access.channel(params["channel"]);
    const starter = access.message(parent, params["message"]);
    if (parent.kind !== "text" && parent.kind !== "announcement") throw refuse("wrong-channel-type");
    access.require(parent, "CreatePublicThreads");
    const { name, auto_archive_duration: minutes } = readForm(NEW_THREAD, body.json);
    if (starter.threadId !== undefined) throw refuse("thread-exists");
    requireRoom(parent);
    const thread = threads.open(parent, {
      name,
      owner: bot,
      starter,
      ...(minutes ? { autoArchiveMinutes: minutes } : {}),
    });
    return { status: 201, body: toChannel(thread, world) };
  }

  function openAlone({ params, body }: Call): Reply {
    const parent = access.channel(params["channel"]);
    const { name, type, auto_archive_duration: minutes, message } = readForm(NEW_THREAD, body.json);
    const options = { name, owner: bot, ...(minutes ? { autoArchiveMinutes: minutes } : {}) };
    if (parent.kind === "forum") {
      access.require(parent, "SendMessages");
      requireRoom(parent);
      const thread = threads.open(parent, options);
      const first = messages.post(thread, { json: message, files: body.files }, { id: thread.id });
      return { status: 201, body: { ...toChannel(thread, world), message: payloads.toMessage(first, true) } };
    }
    if (parent.kind !== "text") throw refuse("wrong-channel-type");
    const isPrivate = (type ?? PRIVATE) === PRIVATE;
    access.require(parent, isPrivate ? "CreatePrivateThreads" : "CreatePublicThreads");
    requireRoom(parent);
    return { status: 201, body: toChannel(threads.open(parent, { ...options, isPrivate }), world) };
  }

  function changeThread({ params, body }: Call): Reply {
    const channel = access.channel(params["channel"]);
    if (channel.thread === undefined) throw refuse("wrong-channel-type");
    const { name, archived: isArchived, locked: isLocked } = readForm(CHANGE, body.json);
    const isManager = world.can(bot.id, channel, "ManageThreads");
    if (isLocked !== undefined && !isManager) throw refuse("missing-permissions");
    if (channel.thread.isArchived) {
      if (isArchived !== false) throw refuse("archived");
      if (channel.thread.isLocked && !isManager) throw refuse("missing-permissions");
      access.require(channel, "SendMessagesInThreads");
    } else if (!isManager && channel.ownerId !== bot.id) throw refuse("missing-permissions");
    threads.set(channel, {
      ...(name === undefined ? {} : { name }),
      ...(isArchived === undefined ? {} : { isArchived }),
      ...(isLocked === undefined ? {} : { isLocked }),
    });
    return ok(toChannel(channel, world));
  }

  function threadOf(id: string | undefined): Channel {
    const channel = access.channel(id);
    if (channel.thread === undefined) throw refuse("wrong-channel-type");
    access.requireOpen(channel);
    return channel;
  }

  function addMember({ params }: Call): Reply {
    const channel = threadOf(params["channel"]);
    const user = params["user"] === "@me" ? bot : world.users.get(params["user"] ?? "");
    if (user === undefined) throw refuse("unknown-user");
    threads.addMember(channel, user);
    return NO_CONTENT;
  }

  function listed(found: Channel[]): Reply {
    const members = found.filter(({ thread }) => thread?.memberIds.has(bot.id) === true);
    return ok({
      threads: found.map((thread) => toChannel(thread, world)),
      members: members.map(({ id }) => toThreadMember(id, bot.id)),
      has_more: false,
    });
  }

  return [
    { route: "POST /channels/:channel/messages/:message/threads", access: "bot", handle: openFromMessage },
    { route: "POST /channels/:channel/threads", access: "bot", handle: openAlone },
    { route: "PATCH /channels/:channel", access: "bot", handle: changeThread },
    {
      route: "GET /channels/:channel/thread-members/:user",
      access: "bot",
      handle({ params }) {
        const { id, thread } = access.channel(params["channel"]);
        const user = world.users.get(params["user"] ?? "");
        if (user === undefined || thread?.memberIds.has(user.id) !== true) throw refuse("unknown-member");
        return ok({ id, user_id: user.id, flags: 0, join_timestamp: new Date(0).toISOString() });
      },
    },
    { route: "PUT /channels/:channel/thread-members/:user", access: "bot", handle: addMember },
    {
      route: "DELETE /channels/:channel/thread-members/:user",
      access: "bot",
      handle({ params }) {
        threads.removeMember(threadOf(params["channel"]), bot);
        return NO_CONTENT;
      },
    },
    {
      route: "GET /guilds/:guild/threads/active",
      access: "bot",
      handle: ({ params }) => listed(threads.activeIn(params["guild"] ?? "")),
    },
    {
      route: "GET /channels/:channel/threads/archived/public",
      access: "bot",
      handle({ params }) {
        const parent = access.channel(params["channel"]);
        access.require(parent, "ReadMessageHistory");
        const all = [...world.channels.values()].filter(({ parentId }) => parentId === parent.id);
        return listed(all.filter(({ thread, kind }) => kind === "public-thread" && thread?.isArchived === true));
      },
    },
  ];
}
