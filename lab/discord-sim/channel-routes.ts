import { z } from "zod";
import type { Access } from "./access.ts";
import type { Builders } from "./builders.ts";
import { readForm } from "./message-body.ts";
import { toChannel } from "./payloads.ts";
import { refuse } from "./refusals.ts";
import { ok, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";

const OPEN_DM = z.object({ recipient_id: z.string() });
const LINKS = z.object({ attachment_urls: z.array(z.string()).min(1).max(50) });

export function createChannelRoutes(simulation: Simulation, access: Access, builders: Builders): Route[] {
  const { world, files } = simulation;
  return [
    {
      route: "GET /channels/:channel",
      access: "bot",
      handle: ({ params }) => ok(toChannel(access.channel(params["channel"]), world)),
    },
    {
      route: "GET /guilds/:guild/channels",
      access: "bot",
      handle({ params }) {
        const guild = world.guilds.get(params["guild"] ?? "");
        if (guild === undefined) throw refuse("unknown-guild");
        if (!guild.members.has(world.bot.id)) throw refuse("missing-access");
        const own = [...world.channels.values()].filter(({ guildId, thread }) => guildId === guild.id && !thread);
        return ok(own.map((channel) => toChannel(channel, world)));
      },
    },
    {
      route: "POST /users/@me/channels",
      access: "bot",
      handle({ body }) {
        const { recipient_id: id } = readForm(OPEN_DM, body.json);
        const user = world.users.get(id);
        if (user === undefined) throw refuse("unknown-user");
        return ok(toChannel(builders.openDm(user), world));
      },
    },
    {
      route: "POST /attachments/refresh-urls",
      access: "bot",
      handle({ body }) {
        const { attachment_urls: urls } = readForm(LINKS, body.json);
        return ok({ refreshed_urls: urls.map((original) => ({ original, refreshed: files.refresh(original) })) });
      },
    },
  ];
}
