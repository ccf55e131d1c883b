import type { Hono } from "hono";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { API_URL } from "../api/web-api.ts";
import type { Parting, SlackAdapterOptions } from "../options.ts";
import { createInstallations, createRefresh } from "./installations.ts";
import { createOAuth } from "./oauth.ts";
import { SCOPES } from "./scopes.ts";

export interface SeveralWorkspacesOptions {
  clientId: string;
  clientSecret: string;
  /** Signs the links with which people return from Slack after an installation. */
  stateSecret: string;
  encryptionKey: Uint8Array;
  publicUrl: string;
  /** The Web API's base URL, which ends in `/api/`; by default Slack's. */
  apiUrl?: string | undefined;
  /** Opens a namespace in the store. Its values never expire. */
  open(namespace: string): Keyv;
  /** Erases the data of a workspace that uninstalled the bot. If it rejects, it is called again. */
  eraseWorkspace(teamId: string): Promise<void>;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

/** Several workspaces that installed the bot themselves or through their organisation. */
export interface SeveralWorkspaces extends Required<Pick<SlackAdapterOptions, "onUninstalled">> {
  installed: SlackAdapterOptions["installed"];
  app: Hono;
}

export function createSeveralWorkspaces(options: SeveralWorkspacesOptions): SeveralWorkspaces {
  const { apiUrl = API_URL, clientId, clientSecret, open, eraseWorkspace, log } = options;
  const refresh = createRefresh(apiUrl, clientId, clientSecret);
  const installations = createInstallations({ ...options, store: open("slack-installations"), refresh });
  const scopes = Object.keys(SCOPES);
  const app = createOAuth({ ...options, apiUrl, scopes, installations, used: open("slack-install-links") });

  async function findGone(id: string, atMs: number, how: Parting): Promise<readonly string[]> {
    if (how !== "withdrawn") return installations.remove(id, atMs);
    // A workspace that also installed the bot itself keeps the bot.
    return (await installations.hasNoOwn(id)) ? [id] : [];
  }

  return {
    installed: { workspaces: installations },
    app,
    async onUninstalled(id, atMs, how) {
      const gone = await findGone(id, atMs, how);
      // Only an uninstall erases data, because a workspace can issue a new token after it revoked one.
      if (how === "revoked") return;
      for (const teamId of gone) {
        await eraseWorkspace(teamId);
        await installations.unlink(teamId);
        log.info({ team: teamId }, "The bot left a Slack workspace; everything stored about it is erased.");
      }
    },
  };
}
