import { findChannel, findMessage, type MethodDeps, type Methods } from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import type { Json, User } from "../world.ts";

export function createPeopleMethods({ core }: MethodDeps): Methods {
  const reaction = (isAdding: boolean): Methods[string] => ({
    scopes: ["reactions:write"],
    token: "bot",
    run(args, { workspace }) {
      const message = findMessage(findChannel(workspace, args.needText("channel")), args.needText("timestamp"));
      const name = args.needText("name");
      const users = message.reactions.get(name) ?? new Set<string>();
      if (users.has(workspace.bot.id) === isAdding)
        throw new SlackRefusal(isAdding ? "already_reacted" : "no_reaction");
      if (isAdding) users.add(workspace.bot.id);
      else users.delete(workspace.bot.id);
      message.reactions.set(name, users);
      core.changes.changed();
      return {};
    },
  });

  return {
    "auth.test": {
      scopes: [],
      token: "bot",
      run: (_args, { workspace: { id, name, bot, organisation }, isOrgWide }) => ({
        url: `${core.origin()}/`,
        team: isOrgWide ? organisation?.name : name,
        user: bot.name,
        team_id: isOrgWide ? organisation?.id : id,
        user_id: bot.id,
        bot_id: bot.botId,
        ...(organisation && { enterprise_id: organisation.id }),
        is_enterprise_install: isOrgWide,
      }),
    },
    "auth.revoke": {
      scopes: [],
      token: "bot",
      run(args, { workspace }) {
        if (!args.flag("test")) workspace.revoked = "token_revoked";
        return { revoked: !args.flag("test") };
      },
    },
    "users.info": {
      scopes: ["users:read"],
      token: "bot",
      run(args, { workspace }) {
        const user = workspace.users.get(args.needText("user"));
        if (user === undefined) throw new SlackRefusal("user_not_found");
        return { user: userToWire(user) };
      },
    },
    "users.list": {
      scopes: ["users:read"],
      token: "bot",
      run(args, { workspace }) {
        const all = [...workspace.users.values()];
        const from = Number(args.text("cursor") ?? 0);
        const to = from + (args.count("limit") ?? all.length);
        const next = to < all.length ? String(to) : "";
        return { members: all.slice(from, to).map(userToWire), response_metadata: { next_cursor: next } };
      },
    },
    "usergroups.users.list": {
      scopes: ["usergroups:read"],
      token: "bot",
      run(args, { workspace }) {
        const members = workspace.groups.get(args.needText("usergroup"));
        if (members === undefined) throw new SlackRefusal("no_such_subteam");
        return { users: [...members] };
      },
    },
    "bots.info": {
      scopes: ["users:read"],
      token: "bot",
      run(args, { workspace }) {
        const bot = [...workspace.users.values()].find(({ botId }) => botId === args.needText("bot"));
        if (bot?.botId === undefined) throw new SlackRefusal("bot_not_found");
        const appId = bot === workspace.bot ? core.app.id : `A${bot.botId.slice(1)}`;
        return { bot: { id: bot.botId, deleted: false, name: bot.name, app_id: appId, user_id: bot.id } };
      },
    },
    "team.info": {
      scopes: ["team:read"],
      token: "bot",
      run: (_args, { workspace: { id, name } }) => ({ team: { id, name, domain: name.toLowerCase() } }),
    },
    "reactions.add": reaction(true),
    "reactions.remove": reaction(false),
  };
}

function userToWire({ id, name, workspace, isAdmin, isGuest, isStranger, isDeactivated, botId }: User): Json {
  const { organisation } = workspace;
  return {
    id,
    team_id: workspace.id,
    name: name.toLowerCase(),
    real_name: name,
    deleted: isDeactivated,
    is_admin: isAdmin,
    is_restricted: isGuest,
    is_stranger: isStranger,
    is_owner: false,
    is_bot: botId !== undefined,
    ...(organisation && { enterprise_user: { id, enterprise_id: organisation.id, teams: [workspace.id] } }),
    tz: "Europe/Berlin",
    profile: { real_name: name, display_name: name, team: workspace.id },
  };
}
