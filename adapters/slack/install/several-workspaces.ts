import type { Hono } from "hono";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { API_URL } from "../api/web-api.ts";
import type { SlackAdapterOptions } from "../options.ts";
import { createGrants } from "./grants.ts";
import { createInstallations } from "./installations.ts";
import { createOAuth } from "./oauth.ts";
import { SCOPES } from "./scopes.ts";

export interface SeveralWorkspacesOptions {
  clientId: string;
  clientSecret: string;
  /** Signs the links with which an installation comes back from Slack. */
  stateSecret: string;
  /** 32 bytes, for the tokens wherever they are kept. */
  encryptionKey: Uint8Array;
  /** This service as the public network reaches it. */
  publicUrl: string;
  /** Web API base that ends in `/api/`; Slack's own when absent. */
  apiUrl?: string | undefined;
  /** Opens a namespace of the store; its values do not expire by themselves. */
  open(namespace: string): Keyv;
  /** Erases the data of a workspace that uninstalled the bot. Called again after a rejection. */
  eraseWorkspace(teamId: string): Promise<void>;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

/** Many workspaces, each with a token of its own that it gave by installing the bot. */
export interface SeveralWorkspaces extends Required<Pick<SlackAdapterOptions, "onUninstalled">> {
  installed: SlackAdapterOptions["installed"];
  /** The pages that install the bot. */
  app: Hono;
}

export function createSeveralWorkspaces(options: SeveralWorkspacesOptions): SeveralWorkspaces {
  const { apiUrl = API_URL, open, eraseWorkspace, log } = options;
  const grants = createGrants({ ...options, apiUrl });
  const installations = createInstallations({ ...options, store: open("slack-installations"), grants });
  const app = createOAuth({
    ...options,
    authorizeUrl: new URL("/oauth/v2/authorize", apiUrl).href,
    scopes: Object.keys(SCOPES),
    grants,
    installations,
    used: open("slack-install-links"),
  });

  return {
    installed: { workspaces: installations },
    app,
    async onUninstalled(teamId, atMs, how) {
      // A token that was revoked may be given anew; who uninstalls the bot takes everything away.
      const isGone = await installations.remove(teamId, atMs);
      if (!isGone || how === "revoked") return;
      await eraseWorkspace(teamId);
      log.info({ team: teamId }, "A Slack workspace uninstalled the bot, and what was kept of it is erased.");
    },
  };
}
