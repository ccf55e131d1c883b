import type { Arguments } from "../arguments.ts";
import type { Call, MethodDeps, Methods } from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import type { View, Views } from "../views.ts";
import type { Json } from "../world.ts";

export function createViewMethods({ views }: MethodDeps & { views: Views }): Methods {
  function open(args: Arguments, { workspace }: Call): Json {
    const view = args.object("view") ?? {};
    const userId = views.spendTrigger(args.needText("trigger_id"));
    return { view: viewToWire(views.open(workspace, userId, view, undefined), workspace.id) };
  }

  function push(args: Arguments, { workspace }: Call): Json {
    const view = args.object("view") ?? {};
    const userId = views.spendTrigger(args.needText("trigger_id"));
    const below = views.top(userId);
    if (below === undefined) throw new SlackRefusal("not_found");
    return { view: viewToWire(views.open(workspace, userId, view, below), workspace.id) };
  }

  function update(args: Arguments, { workspace }: Call): Json {
    const known = views.find(args.text("view_id") ?? args.needText("external_id"));
    if (known === undefined || !known.isOpen) throw new SlackRefusal("not_found");
    views.change(known, args.object("view") ?? {}, args.text("hash"));
    return { view: viewToWire(known, workspace.id) };
  }

  function publish(args: Arguments, { workspace }: Call): Json {
    const userId = args.needText("user_id");
    if (!workspace.users.has(userId)) throw new SlackRefusal("user_not_found");
    const home = views.publish(workspace, userId, args.object("view") ?? {}, args.text("hash"));
    return { view: viewToWire(home, workspace.id) };
  }

  const bot = { scopes: [], token: "bot" } as const;
  return {
    "views.open": { ...bot, run: open },
    "views.push": { ...bot, run: push },
    "views.update": { ...bot, run: update },
    "views.publish": { ...bot, run: publish },
  };
}

/** Formats a view, with the values that a person entered. */
export function viewToWire({ id, hash, body, rootId, previousId, botId, appId }: View, teamId: string): Json {
  return {
    blocks: [],
    private_metadata: "",
    callback_id: "",
    external_id: "",
    state: { values: {} },
    ...body,
    id,
    hash,
    team_id: teamId,
    root_view_id: rootId,
    previous_view_id: previousId ?? null,
    bot_id: botId,
    app_id: appId,
  };
}
