import type { Access } from "./access.ts";
import { type Call, NO_CONTENT, type Reply, type Route } from "./routes.ts";
import type { Simulation } from "./simulation.ts";
import type { Message } from "./world.ts";

const OWN = "/channels/:channel/messages/:message/reactions/:emoji/@me";

export function createReactionRoutes({ world, changes }: Simulation, access: Access): Route[] {
  function find({ params }: Call): { message: Message; emoji: string } {
    const channel = access.channel(params["channel"]);
    access.require(channel, "ReadMessageHistory", "AddReactions");
    access.requireOpen(channel);
    return { message: access.message(channel, params["message"]), emoji: params["emoji"] ?? "" };
  }

  function react(call: Call): Reply {
    const { message, emoji } = find(call);
    const users = message.reactions.get(emoji) ?? new Set();
    message.reactions.set(emoji, users.add(world.bot.id));
    changes.changed();
    return NO_CONTENT;
  }

  function takeBack(call: Call): Reply {
    const { message, emoji } = find(call);
    const users = message.reactions.get(emoji);
    users?.delete(world.bot.id);
    if (users?.size === 0) message.reactions.delete(emoji);
    changes.changed();
    return NO_CONTENT;
  }

  return [
    { route: `PUT ${OWN}`, access: "bot", handle: react },
    { route: `DELETE ${OWN}`, access: "bot", handle: takeBack },
  ];
}
