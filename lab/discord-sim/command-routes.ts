import type { Commands } from "./commands.ts";
import { refuse } from "./refusals.ts";
import { type Call, NO_CONTENT, ok, type Route } from "./routes.ts";
import type { World } from "./world.ts";

const SCOPES = ["/applications/:application/commands", "/applications/:application/guilds/:guild/commands"];

export function createCommandRoutes(world: World, commands: Commands): Route[] {
  function scopeOf({ params }: Call): string | undefined {
    if (params["application"] !== world.bot.id) throw refuse("unknown-application");
    const guildId = params["guild"];
    if (guildId !== undefined && !world.guilds.has(guildId)) throw refuse("missing-access");
    return guildId;
  }

  return SCOPES.flatMap((path): Route[] => [
    {
      route: `GET ${path}`,
      access: "bot",
      handle(call) {
        const guildId = scopeOf(call);
        return ok(commands.list(guildId).map((command) => commands.toPayload(command, guildId)));
      },
    },
    {
      route: `PUT ${path}`,
      access: "bot",
      handle(call) {
        const guildId = scopeOf(call);
        return ok(commands.replace(guildId, call.body.json).map((command) => commands.toPayload(command, guildId)));
      },
    },
    {
      route: `POST ${path}`,
      access: "bot",
      handle(call) {
        const guildId = scopeOf(call);
        return { status: 201, body: commands.toPayload(commands.put(guildId, call.body.json), guildId) };
      },
    },
    {
      route: `PATCH ${path}/:command`,
      access: "bot",
      handle(call) {
        const guildId = scopeOf(call);
        const changed = commands.change(guildId, call.params["command"] ?? "", call.body.json);
        return ok(commands.toPayload(changed, guildId));
      },
    },
    {
      route: `DELETE ${path}/:command`,
      access: "bot",
      handle(call) {
        commands.remove(scopeOf(call), call.params["command"] ?? "");
        return NO_CONTENT;
      },
    },
  ]);
}
