import type { ServerResponse } from "node:http";
import type { Core } from "./core.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Json, Organisation, Workspace } from "./world.ts";

/** Where the app is installed: in one workspace, or in an organisation for all its workspaces. */
type Owner = Workspace | Organisation;

export interface OAuth {
  /** Sets where the next visitor of the authorize page installs the app. */
  installInto(owner: Owner): void;
  /** The authorize page. It asks nothing and redirects back with a code. */
  page(url: URL, response: ServerResponse): boolean;
  /** Sets the lifetime of new bot tokens, which then come with a refresh token. Undefined: new tokens never expire. */
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
  const codes = new Map<string, Owner>();
  const refreshTokens = new Map<string, Owner>();
  let chosen: Owner | undefined;
  let expiresInS: number | undefined;

  function grantTo(owner: Owner): Json {
    const { id, name, bot, scopes } = owner;
    const isOrgWide = "granted" in owner;
    const organisation = isOrgWide ? owner : owner.organisation;
    const answer = {
      app_id: app.id,
      authed_user: { id: isOrgWide ? owner.installerId : owner.installer.id },
      scope: [...scopes].join(","),
      token_type: "bot",
      access_token: owner.botToken,
      bot_user_id: bot.id,
      team: isOrgWide ? null : { id, name },
      enterprise: organisation === undefined ? null : { id: organisation.id, name: organisation.name },
      is_enterprise_install: isOrgWide,
    };
    return expiresInS === undefined ? answer : { ...answer, ...renewToken(owner, expiresInS) };
  }

  function renewToken(owner: Owner, lifetimeS: number): Json {
    owner.botToken = `xoxe.xoxb-${newId("")}-simulator`;
    owner.revoked = undefined;
    const issued = owner.botToken;
    clock.after(lifetimeS * 1000, () => {
      if (owner.botToken === issued) owner.revoked = "token_expired";
    });
    const refreshToken = `xoxe-${newId("")}`;
    refreshTokens.set(refreshToken, owner);
    return { access_token: issued, refresh_token: refreshToken, expires_in: lifetimeS };
  }

  return {
    installInto(owner) {
      chosen = owner;
    },
    rotate(lifetimeS) {
      expiresInS = lifetimeS;
    },
    page(url, response) {
      if (url.pathname !== "/oauth/v2/authorize") return false;
      const back = new URL(url.searchParams.get("redirect_uri") ?? "http://127.0.0.1/");
      const owner = chosen ?? workspaces.values().next().value;
      const code = newId("code-");
      if (owner !== undefined) codes.set(code, owner);
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
      const owner = grants.get(key);
      if (owner === undefined) throw new SlackRefusal(refusal);
      grants.delete(key);
      owner.revoked = undefined;
      changes.changed();
      return grantTo(owner);
    },
  };
}
