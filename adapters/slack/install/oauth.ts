import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import {
  AuthorizationError,
  type CallbackOptions,
  ClearStateStore,
  InstallProvider,
  InvalidStateError,
  MissingCodeError,
  MissingStateError,
  type Installation as SlackInstallation,
  type StateStore,
} from "@slack/oauth";
import { Hono } from "hono";
import { setCookie } from "hono/cookie";
import { html } from "hono/html";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { codeOf } from "../api/error.ts";
import { toBoltLogger } from "../hear/transport.ts";
import type { Installation, Installations } from "./installations.ts";

const INSTALL_PATH = "/slack/install";
const REDIRECT_PATH = "/slack/oauth_redirect";
/** Opens the bot in Slack after the installation. */
const OPEN_PATH = "/app_redirect";
const COOKIE = "palaver-slack-install";
const CALL_MS = 10_000;
const STATE_S = 10 * 60;

const EXPIRED_LINK = "This link was already used, has expired, or was opened in another browser.";
const BAD_LINKS = [InvalidStateError, MissingStateError, MissingCodeError];

/** Keeps these pages out of caches and frames, and hides their URL, which contains a code, from other sites. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

export interface OAuthOptions {
  clientId: string;
  clientSecret: string;
  stateSecret: string;
  publicUrl: string;
  /** The Web API's base URL, which ends in `/api/`. */
  apiUrl: string;
  scopes: readonly string[];
  installations: Pick<Installations, "keep">;
  /** Remembers used links. Must be a namespace that nothing else uses. */
  used: Pick<Keyv, "get" | "set">;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

export function createOAuth(options: OAuthOptions): Hono {
  const { clientId, clientSecret, publicUrl, apiUrl, installations, log, now } = options;
  const authorizationUrl = new URL("/oauth/v2/authorize", apiUrl).href;
  const base = publicUrl.replace(/\/$/, "");
  const asked = { scopes: [...options.scopes], redirectUri: base + REDIRECT_PATH };
  const stateStore = createStateStore(options);
  const provider = new InstallProvider({
    clientId,
    clientSecret,
    stateStore,
    stateCookieName: COOKIE,
    authorizationUrl,
    clientOptions: { slackApiUrl: apiUrl, retryConfig: { retries: 0 }, timeout: CALL_MS, rejectRateLimitedCalls: true },
    // Drops the library's own error log, because `failureAsync` logs the problem.
    logger: { ...toBoltLogger(log), error: () => {} },
    installationStore: {
      storeInstallation: async (installation) => installations.keep(toInstallation(installation, now())),
      fetchInstallation: () => Promise.reject(new Error("`Installations` reads the installations.")),
    },
  });

  const callbacks: CallbackOptions = {
    async successAsync({ team, enterprise, enterpriseUrl, appId = "" }, _options, _request, response) {
      log.info({ team: team?.id, enterprise: enterprise?.id }, "A Slack workspace or organisation installed the bot.");
      if (team === undefined) {
        const manageUrl = `${enterpriseUrl ?? "https://slack.com/"}manage/organization/apps/profile/${appId}/workspaces/add`;
        return send(response, 200, toOrganisationPage(enterprise?.name ?? "", manageUrl));
      }
      const openUrl = new URL(OPEN_PATH, authorizationUrl);
      openUrl.search = new URLSearchParams({ app: appId, team: team.id }).toString();
      await send(response, 200, toDonePage(team.name ?? "", openUrl.href));
    },
    async failureAsync(error, _options, _request, response) {
      const fail = (status: number, sentence: string) =>
        send(response, status, toFailurePage(sentence, base + INSTALL_PATH));
      if (error instanceof AuthorizationError) return fail(200, "You didn't allow it, so nothing was installed.");
      if (BAD_LINKS.some((kind) => error instanceof kind)) return fail(400, EXPIRED_LINK);
      log.warn({ err: error, code: codeOf(error) }, "An installation in Slack failed.");
      await fail(502, "Slack didn't finish the installation, or I couldn't save it.");
    },
  };

  const app = new Hono();
  app.get(INSTALL_PATH, async (context) => {
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
    const state = await stateStore.generateStateParam(asked, new Date());
    // Sets the cookie under the path from which the provider deletes it. The provider itself would set it only with
    // `Secure`.
    setCookie(context, COOKIE, state, {
      path: "/",
      httpOnly: true,
      sameSite: "Lax",
      secure: base.startsWith("https:"),
      maxAge: STATE_S,
    });
    return context.html(toInstallPage(await provider.generateInstallUrl(asked, true, state)));
  });
  app.get(REDIRECT_PATH, async (context) => {
    const { incoming, outgoing } = bindingsOf(context);
    await provider.handleCallback(incoming, outgoing, callbacks);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** Stores the states of Slack's own library. Each state works only once, in any process. */
function createStateStore({ stateSecret, used }: OAuthOptions): StateStore {
  const states = new ClearStateStore(stateSecret, STATE_S);
  return {
    generateStateParam: (asked, at) => states.generateStateParam(asked, at),
    async verifyStateParam(at, state) {
      const asked = await states.verifyStateParam(at, state);
      if ((await used.get(state)) !== undefined) throw new InvalidStateError("This state was already used.");
      await used.set(state, true, STATE_S * 1_000);
      return asked;
    },
  };
}

function toInstallation({ team, enterprise, bot }: SlackInstallation, installedAt: number): Installation {
  const id = team?.id ?? enterprise?.id;
  if (bot === undefined || id === undefined) throw new Error("Slack returned no bot token.");
  const { token, refreshToken, expiresAt, id: botId, userId: botUserId } = bot;
  return {
    teamId: id,
    isOrgWide: team === undefined,
    ...(enterprise && { enterpriseId: enterprise.id }),
    botUserId,
    botId,
    token,
    installedAt,
    ...(refreshToken !== undefined && { refreshToken }),
    // Slack's time is in seconds.
    ...(expiresAt !== undefined && { expiresAt: expiresAt * 1_000 }),
  };
}

type Page = ReturnType<typeof html>;

async function send(response: ServerResponse, status: number, page: Page): Promise<void> {
  response.writeHead(status, { ...HEADERS, "content-type": "text/html; charset=utf-8" }).end((await page).toString());
}

function toInstallPage(authorizeUrl: string): Page {
  return page(
    "Add to Slack",
    html`<p>Slack shows you what the bot can do and asks you to allow it.</p>
    <p><a href="${authorizeUrl}">Add to Slack</a></p>`,
  );
}

function toDonePage(teamName: string, openUrl: string): Page {
  return page(
    "The bot is installed",
    html`<p>The bot is in ${teamName === "" ? "your workspace" : teamName}. Mention it in a
      channel, or write to it directly.</p>
    <p><a href="${openUrl}">Open Slack</a></p>`,
  );
}

function toOrganisationPage(name: string, manageUrl: string): Page {
  return page(
    "The bot is installed",
    html`<p>The bot is in ${name === "" ? "your organisation" : name}. Choose the workspaces in
      which people may use it.</p>
    <p><a href="${manageUrl}">Choose workspaces</a></p>`,
  );
}

function toFailurePage(sentence: string, installUrl: string): Page {
  return page(
    "The bot is not installed",
    html`<p>${sentence}</p>
    <p><a href="${installUrl}">Start again</a></p>`,
  );
}

function page(title: string, body: Page): Page {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title}</title>
      </head>
      <body>
        <h1>${title}</h1>
        ${body}
      </body>
    </html>`;
}
