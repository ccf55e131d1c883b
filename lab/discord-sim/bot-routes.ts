import type { ApiDeps } from "./api.ts";
import { toApplicationFlags } from "./handshake.ts";
import { toGuild, toMember, toRole, toUser } from "./payloads.ts";
import { refuse } from "./refusals.ts";
import { ok, type Route } from "./routes.ts";
import type { Guild } from "./world.ts";

const MAX_GUILDS = 200;

export function createBotRoutes(deps: ApiDeps): Route[] {
  const { simulation, sessionLimits, recommendedShards, isSparse, gatewayUrl } = deps;
  const { world, portal } = simulation;
  const { bot } = world;

  function guildOf(id: string | undefined): Guild {
    const guild = world.guilds.get(id ?? "");
    if (guild === undefined) throw refuse("unknown-guild");
    if (!guild.members.has(bot.id)) throw refuse("missing-access");
    return guild;
  }

  const application = () =>
    ok({
      id: bot.id,
      name: bot.name,
      icon: null,
      description: "",
      bot_public: portal.isPublic,
      bot_require_code_grant: false,
      verify_key: "00".repeat(32),
      flags: toApplicationFlags(portal),
      bot: toUser(bot),
      approximate_guild_count: world.guilds.size,
    });

  return [
    { route: "GET /gateway", access: "bot", handle: () => ok({ url: gatewayUrl() }) },
    {
      route: "GET /gateway/bot",
      access: "bot",
      handle: () =>
        ok({
          url: gatewayUrl(),
          // Servers that imitate Discord omit these fields.
          ...(!isSparse && {
            shards: recommendedShards,
            session_start_limit: {
              total: 1000,
              remaining: sessionLimits.remaining,
              reset_after: 14_400_000,
              max_concurrency: sessionLimits.maxConcurrency,
            },
          }),
        }),
    },
    { route: "GET /applications/@me", access: "bot", handle: application },
    { route: "GET /oauth2/applications/@me", access: "bot", handle: application },
    { route: "GET /users/@me", access: "bot", handle: () => ok({ ...toUser(bot), verified: true, mfa_enabled: true }) },
    {
      route: "GET /users/@me/guilds",
      access: "bot",
      handle({ query }) {
        const all = [...world.guilds.values()].filter(({ members }) => members.has(bot.id));
        const own = all.slice(0, Math.min(MAX_GUILDS, Number(query.get("limit") ?? MAX_GUILDS)));
        return ok(
          own.map(({ id, name, ownerId }) => ({ id, name, icon: null, owner: ownerId === bot.id, features: [] })),
        );
      },
    },
    {
      route: "GET /users/:user",
      access: "bot",
      handle({ params }) {
        const user = world.users.get(params["user"] ?? "");
        if (user === undefined) throw refuse("unknown-user");
        return ok(toUser(user));
      },
    },
    { route: "GET /guilds/:guild", access: "bot", handle: ({ params }) => ok(toGuild(guildOf(params["guild"]))) },
    {
      route: "GET /guilds/:guild/roles",
      access: "bot",
      handle({ params }) {
        const guild = guildOf(params["guild"]);
        return ok([...guild.roles.values()].map((role) => toRole(role, guild)));
      },
    },
    {
      route: "GET /guilds/:guild/members/:user",
      access: "bot",
      handle({ params }) {
        const member = guildOf(params["guild"]).members.get(params["user"] ?? "");
        if (member === undefined) throw refuse("unknown-member");
        return ok({ ...toMember(member), user: toUser(member.user) });
      },
    },
  ];
}
