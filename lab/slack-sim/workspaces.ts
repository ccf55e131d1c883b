import type { Core } from "./core.ts";
import type { Organisation, RevokedReason, User, Workspace } from "./world.ts";

/** The scopes in the manifest. */
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
  "search:read.public",
  "team:read",
  "usergroups:read",
  "users:read",
];

export interface UserOptions {
  name: string;
  isAdmin?: boolean;
  isGuest?: boolean;
  isBot?: boolean;
  /** People in two workspaces can have the same id, because Slack does not exclude that. */
  id?: string;
  /** The id of the app's user. In an organisation, it is the same in all workspaces. */
  botId?: string;
}

export function addOrganisation(core: Core, name: string): Organisation {
  const organisation: Organisation = {
    id: core.newId("E"),
    name,
    botToken: `xoxb-${core.newId("")}-simulator`,
    scopes: new Set(DEFAULT_SCOPES),
    bot: { id: core.newId("U"), botId: core.newId("B") },
    installerId: core.newId("U"),
    granted: new Set(),
    revoked: undefined,
  };
  core.organisations.set(organisation.id, organisation);
  return organisation;
}

/** Adds a workspace that has installed the app, itself or through its organisation. */
export function addWorkspace(
  core: Core,
  name: string,
  scopes: readonly string[] = DEFAULT_SCOPES,
  organisation?: Organisation,
): Workspace {
  const workspace: Omit<Workspace, "bot" | "installer"> = {
    id: core.newId("T"),
    name,
    organisation,
    botToken: `xoxb-${core.newId("")}-simulator`,
    scopes: new Set(scopes),
    users: new Map(),
    channels: new Map(),
    files: new Map(),
    groups: new Map(),
    revoked: undefined,
  };
  const whole = workspace as Workspace;
  whole.bot = addUser(core, whole, { name: core.app.name, isBot: true, ...(organisation && organisation.bot) });
  organisation?.granted.add(whole.id);
  whole.installer = addUser(core, whole, { name: "Installer", isAdmin: true });
  core.workspaces.set(whole.id, whole);
  return whole;
}

export function addUser(
  core: Core,
  workspace: Workspace,
  { name, isAdmin = false, isGuest = false, isBot = false, id = core.newId("U"), ...options }: UserOptions,
): User {
  const botId = isBot ? (options.botId ?? core.newId("B")) : undefined;
  const user: User = { id, name, workspace, isAdmin, isGuest, isStranger: false, isDeactivated: false, botId };
  workspace.users.set(user.id, user);
  return user;
}

/** Revokes the app's token. With `isTold`, the app gets events about it. */
export function revokeToken(core: Core, workspace: Workspace, reason: RevokedReason, { isTold = false } = {}): void {
  // Slack sends these events while the app is still installed, so send them before revoking the token.
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

export function uninstallFrom(core: Core, organisation: Organisation): void {
  const [workspace] = [...core.workspaces.values()].filter((one) => one.organisation === organisation);
  if (workspace === undefined) throw new Error("An organisation without workspaces sends no events.");
  core.emit(workspace, { type: "app_uninstalled", event_ts: core.newTs() }, { isOrgWide: true });
  organisation.revoked = "account_inactive";
  core.changes.changed();
}

export function withdrawFrom(core: Core, workspace: Workspace): void {
  const event = { type: "team_access_revoked", team_ids: [workspace.id], event_ts: core.newTs() };
  core.emit(workspace, event, { isOrgWide: true });
  workspace.organisation?.granted.delete(workspace.id);
  core.changes.changed();
}
