import { z } from "zod";
import { readForm } from "./message-body.ts";
import { toChannel } from "./payloads.ts";
import { computePermissions, hasPermission } from "./permissions.ts";
import { refuse } from "./refusals.ts";
import { ok, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import { type Message, shown } from "./world.ts";

const RETRY_S = 1;
const QUERY = z.strictObject({
  content: z.string().max(1024).optional(),
  limit: z.coerce.number().int().min(1).max(25).default(25),
  offset: z.coerce.number().int().min(0).max(9975).default(0),
  sort_by: z.enum(["timestamp", "relevance"]).optional(),
  sort_order: z.enum(["asc", "desc"]).optional(),
  include_nsfw: z.enum(["true", "false"]).optional(),
});

/** https://docs.discord.com/developers/resources/message#search-guild-messages */
export function createSearchRoutes({ world, search, payloads, portal }: Simulation): Route[] {
  const { bot } = world;

  function isFound({ channelId, deletedAtMs, ephemeralFor }: Message): boolean {
    const channel = world.channels.get(channelId);
    if (channel === undefined || deletedAtMs !== undefined || ephemeralFor !== undefined) return false;
    return search.isBehind || (world.canSee(bot.id, channel) && world.can(bot.id, channel, "ReadMessageHistory"));
  }

  return [
    {
      route: "GET /guilds/:guild/messages/search",
      access: "bot",
      handle({ params, query }) {
        const guild = world.guilds.get(params["guild"] ?? "");
        if (guild === undefined) throw refuse("unknown-guild");
        // "Restricted according to whether the MESSAGE_CONTENT Privileged Intent is enabled for your application."
        if (!guild.members.has(bot.id) || !portal.messageContent) throw refuse("missing-access");
        if (!hasPermission(computePermissions(guild, bot.id, undefined), "ReadMessageHistory")) {
          throw refuse("missing-permissions");
        }
        const { content = "", limit, offset } = readForm(QUERY, Object.fromEntries(query));
        if (search.unready > 0) {
          search.unready--;
          const message = "Index not yet available. Try again later";
          return { status: 202, body: { message, code: 110000, documents_indexed: 0, retry_after: RETRY_S } };
        }
        const words = content.toLowerCase().split(/\s+/).filter(Boolean);
        const channels = [...world.channels.values()].filter(({ guildId }) => guildId === guild.id);
        const found = channels
          .flatMap(({ messages }) => [...messages.values()])
          .filter((message) => isFound(message) && words.every((word) => textOf(message).includes(word)))
          .toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? 1 : -1));
        const page = found.slice(offset, offset + limit);
        const threads = channels.filter(({ id, thread }) => thread && page.some(({ channelId }) => channelId === id));
        return ok({
          doing_deep_historical_index: false,
          total_results: found.length,
          messages: page.map((message) => {
            const { reactions: _reactions, ...payload } = payloads.toMessage(message, portal.messageContent);
            return [payload];
          }),
          ...(threads.length > 0 && { threads: threads.map((thread) => toChannel(thread, world)), members: [] }),
        });
      },
    },
  ];
}

function textOf(message: Message): string {
  return shown(message).content.toLowerCase();
}
