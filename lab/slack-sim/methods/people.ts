import { findChannel, findMessage, type MethodDeps, type Methods } from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import type { Json, User } from "../world.ts";

/** Who the app is, who the others are, and what they feel about a message. */
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
      run: (_args, { workspace: { id, name, bot } }) => ({
        url: `${core.origin()}/`,
        team: name,
        user: bot.name,
        team_id: id,
        user_id: bot.id,
        bot_id: bot.botId,
        is_enterprise_install: false,
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

function userToWire({ id, name, workspace, isAdmin, botId }: User): Json {
  return {
    id,
    team_id: workspace.id,
    name: name.toLowerCase(),
    real_name: name,
    deleted: false,
    is_admin: isAdmin,
    is_owner: false,
    is_bot: botId !== undefined,
    tz: "Europe/Berlin",
    profile: { real_name: name, display_name: name, team: workspace.id },
  };
}
