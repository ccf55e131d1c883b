import type { Core } from "./core.ts";
import type { RevokedReason, User, Workspace } from "./world.ts";

/** Scopes that the manifest asks for. */
const DEFAULT_SCOPES = [
  "app_mentions:read",
  "assistant:write",
  "channels:history",
  "channels:join",
  "channels:read",
  "chat:write",
  "commands",
  "files:read",
  "files:write",
  "groups:history",
  "groups:read",
  "im:history",
  "im:read",
  "im:write",
  "mpim:history",
  "mpim:read",
  "reactions:read",
  "reactions:write",
  "team:read",
  "usergroups:read",
  "users:read",
];

export interface UserOptions {
  name: string;
  isAdmin?: boolean;
  isBot?: boolean;
  /** Slack does not promise that people of two workspaces have two. */
  id?: string;
}

/** Adds a workspace in which the app is installed. */
export function addWorkspace(core: Core, name: string, scopes: readonly string[] = DEFAULT_SCOPES): Workspace {
  const workspace: Omit<Workspace, "bot" | "installer"> = {
    id: core.newId("T"),
    name,
    botToken: `xoxb-${core.newId("")}-simulator`,
    scopes: new Set(scopes),
    users: new Map(),
    channels: new Map(),
    files: new Map(),
    groups: new Map(),
    revoked: undefined,
  };
  const whole = workspace as Workspace;
  whole.bot = addUser(core, whole, { name: core.app.name, isBot: true });
  whole.installer = addUser(core, whole, { name: "Installer", isAdmin: true });
  core.workspaces.set(whole.id, whole);
  return whole;
}

export function addUser(
  core: Core,
  workspace: Workspace,
  { name, isAdmin = false, isBot = false, id = core.newId("U") }: UserOptions,
): User {
  const botId = isBot ? core.newId("B") : undefined;
  const user: User = { id, name, workspace, isAdmin, botId };
  workspace.users.set(user.id, user);
  return user;
}

/** Takes the app's token away; with `isTold` the app hears of it as well. */
export function revokeToken(core: Core, workspace: Workspace, reason: RevokedReason, { isTold = false } = {}): void {
  // The events leave before the token dies, as the app is still installed when Slack sends them.
  if (isTold) {
    core.emit(workspace, {
      type: "tokens_revoked",
      tokens: { oauth: [], bot: [workspace.bot.id] },
      event_ts: core.newTs(),
    });
    if (reason === "account_inactive") core.emit(workspace, { type: "app_uninstalled", event_ts: core.newTs() });
  }
  workspace.revoked = reason;
  core.changes.changed();
}
