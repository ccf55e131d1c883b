import type { ServerResponse } from "node:http";
import type { Core } from "./core.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Json, Workspace } from "./world.ts";

/** Installing the app into further workspaces. */
export interface OAuth {
  /** The workspace in which the next visitor of the authorize page installs the app. */
  installInto(workspace: Workspace): void;
  /** The authorize page, on which everybody agrees at once: it leads back with a code. */
  page(url: URL, response: ServerResponse): boolean;
  /** Bot tokens expire after this long and come with a refresh token; undefined turns rotation off. */
  rotate(expiresInS: number | undefined): void;
  exchange(grant: Grant): Json;
}

export interface Grant {
  clientId: string;
  clientSecret: string;
  code: string | undefined;
  refreshToken: string | undefined;
}

export function createOAuth({ app, changes, clock, newId, workspaces }: Core): OAuth {
  const codes = new Map<string, Workspace>();
  const refreshTokens = new Map<string, Workspace>();
  let chosen: Workspace | undefined;
  let expiresInS: number | undefined;

  function grantTo(workspace: Workspace): Json {
    const { id, name, bot, installer, scopes } = workspace;
    const answer = {
      app_id: app.id,
      authed_user: { id: installer.id },
      scope: [...scopes].join(","),
      token_type: "bot",
      access_token: workspace.botToken,
      bot_user_id: bot.id,
      team: { id, name },
      enterprise: null,
      is_enterprise_install: false,
    };
    return expiresInS === undefined ? answer : { ...answer, ...renewToken(workspace, expiresInS) };
  }

  function renewToken(workspace: Workspace, lifetimeS: number): Json {
    workspace.botToken = `xoxe.xoxb-${newId("")}-simulator`;
    workspace.revoked = undefined;
    const issued = workspace.botToken;
    clock.after(lifetimeS * 1000, () => {
      if (workspace.botToken === issued) workspace.revoked = "token_expired";
    });
    const refreshToken = `xoxe-${newId("")}`;
    refreshTokens.set(refreshToken, workspace);
    return { access_token: issued, refresh_token: refreshToken, expires_in: lifetimeS };
  }

  return {
    installInto(workspace) {
      chosen = workspace;
    },
    rotate(lifetimeS) {
      expiresInS = lifetimeS;
    },
    page(url, response) {
      if (url.pathname !== "/oauth/v2/authorize") return false;
      const back = new URL(url.searchParams.get("redirect_uri") ?? "http://127.0.0.1/");
      const workspace = chosen ?? workspaces.values().next().value;
      const code = newId("code-");
      if (workspace !== undefined) codes.set(code, workspace);
      back.searchParams.set("code", code);
      back.searchParams.set("state", url.searchParams.get("state") ?? "");
      response.writeHead(302, { location: back.href }).end();
      return true;
    },
    exchange({ clientId, clientSecret, code, refreshToken }) {
      if (clientId !== app.clientId) throw new SlackRefusal("invalid_client_id");
      if (clientSecret !== app.clientSecret) throw new SlackRefusal("bad_client_secret");
      const [grants, key, refusal] =
        refreshToken === undefined
          ? [codes, code ?? "", "invalid_code"]
          : [refreshTokens, refreshToken, "invalid_refresh_token"];
      const workspace = grants.get(key);
      if (workspace === undefined) throw new SlackRefusal(refusal);
      grants.delete(key);
      workspace.revoked = undefined;
      changes.changed();
      return grantTo(workspace);
    },
  };
}
