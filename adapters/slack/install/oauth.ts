import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type Context, Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { html } from "hono/html";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { codeOf } from "../api/error.ts";
import type { Grants } from "./grants.ts";
import type { Installations } from "./installations.ts";

const INSTALL_PATH = "/slack/install";
const REDIRECT_PATH = "/slack/oauth_redirect";
/** Opens the bot in the person's own Slack, where they agreed. */
const OPEN_PATH = "/app_redirect";
const COOKIE = "palaver-slack-install";

const EXPIRED_LINK = "This link was used before, is too old, or was opened in another browser.";

/** Nothing of these pages is kept, framed or told to others: the address carries a code. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Agreeing at Slack's page takes people less than this. */
export const STATE_MS = 10 * 60_000;

export interface OAuthOptions {
  clientId: string;
  stateSecret: string;
  /** This service as the public network reaches it. */
  publicUrl: string;
  /** Slack's page on which people agree. */
  authorizeUrl: string;
  scopes: readonly string[];
  grants: Pick<Grants, "exchange" | "identify">;
  installations: Pick<Installations, "keep">;
  /** A namespace of its own: links that were used. */
  used: Pick<Keyv, "get" | "set">;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

/** The pages that install the bot into a workspace. */
export function createOAuth(options: OAuthOptions): Hono {
  const { stateSecret, publicUrl, authorizeUrl, clientId, scopes, log, now } = options;
  const states = createStates(stateSecret, now);
  const base = publicUrl.replace(/\/$/, "");
  const redirectUri = base + REDIRECT_PATH;
  const isSecure = base.startsWith("https:");
  const app = new Hono();

  app.use("/slack/*", async (context, next) => {
    await next();
    if (![INSTALL_PATH, REDIRECT_PATH].includes(context.req.path)) return;
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
  });

  app.get(INSTALL_PATH, (context) => {
    const state = states.create();
    const target = new URL(authorizeUrl);
    target.search = new URLSearchParams({
      client_id: clientId,
      scope: scopes.join(","),
      redirect_uri: redirectUri,
      state,
    }).toString();
    setCookie(context, COOKIE, state, {
      path: "/slack",
      httpOnly: true,
      sameSite: "Lax",
      secure: isSecure,
      maxAge: STATE_MS / 1_000,
    });
    return context.html(toInstallPage(target.href));
  });

  app.get(REDIRECT_PATH, async (context) => {
    const { code, state = "", error } = context.req.query();
    const cookie = getCookie(context, COOKIE) ?? "";
    deleteCookie(context, COOKIE, { path: "/slack", secure: isSecure });
    if (!isSame(cookie, state) || !states.isGood(state) || (await isUsed(state, options))) {
      return fail(context, 400, EXPIRED_LINK);
    }
    if (error === "access_denied") return fail(context, 200, "Nobody agreed, so nothing was installed.");
    if (code === undefined || code === "") return fail(context, 400, EXPIRED_LINK);
    try {
      const { teamId, teamName, appId } = await install(code, redirectUri, options);
      log.info({ team: teamId }, "A Slack workspace installed the bot.");
      const openUrl = new URL(OPEN_PATH, authorizeUrl);
      openUrl.search = new URLSearchParams({ app: appId, team: teamId }).toString();
      return context.html(toDonePage(teamName, openUrl.href));
    } catch (err) {
      if (err instanceof OrganisationInstallError) return fail(context, 400, err.message);
      log.warn({ err, code: codeOf(err) }, "An installation in a Slack workspace failed.");
      return fail(context, 502, "Slack did not complete it, or it could not be stored here.");
    }
  });

  function fail(context: Context, status: 200 | 400 | 502, sentence: string) {
    return context.html(toFailurePage(sentence, base + INSTALL_PATH), status);
  }

  return app;
}

/** The bot keeps its workspaces apart by their ids, and an organisation is none. */
class OrganisationInstallError extends Error {
  override readonly name = "OrganisationInstallError";
}

/** A link works once, in all processes. */
async function isUsed(state: string, { used }: OAuthOptions): Promise<boolean> {
  if ((await used.get(state)) !== undefined) return true;
  await used.set(state, true, STATE_MS);
  return false;
}

async function install(code: string, redirectUri: string, { grants, installations, now }: OAuthOptions) {
  const { token, refreshToken, expiresInS, team, appId } = await grants.exchange(code, redirectUri);
  if (team === undefined) {
    throw new OrganisationInstallError("It was installed for a whole organisation. Choose one workspace instead.");
  }
  const owner = await grants.identify(token);
  if (owner.teamId !== team.id) throw new Error("Slack gave a token that belongs to another workspace.");
  await installations.keep({
    ...owner,
    token,
    ...(refreshToken !== undefined && { refreshToken }),
    ...(expiresInS !== undefined && { expiresAt: now() + expiresInS * 1_000 }),
    installedAt: now(),
  });
  return { teamId: team.id, teamName: team.name, appId };
}

type Page = ReturnType<typeof html>;

function toInstallPage(authorizeUrl: string): Page {
  return page(
    "Add to Slack",
    html`<p>Slack will show you what the bot may do, and ask you to agree.</p>
    <p><a href="${authorizeUrl}">Add to Slack</a></p>`,
  );
}

function toDonePage(teamName: string, openUrl: string): Page {
  return page(
    "It is installed",
    html`<p>The bot is in ${teamName === "" ? "your workspace" : teamName}. Mention it in a
      channel, or write to it directly.</p>
    <p><a href="${openUrl}">Open Slack</a></p>`,
  );
}

function toFailurePage(sentence: string, installUrl: string): Page {
  return page(
    "It is not installed",
    html`<p>${sentence}</p>
    <p><a href="${installUrl}">Begin again</a></p>`,
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

/** Proof that who comes back from Slack is who was sent there, from here and not long ago. */
export interface States {
  create(): string;
  /** True for a state that was created here and has not expired. */
  isGood(state: string): boolean;
}

export function createStates(secret: string, now: () => number): States {
  const sign = (text: string) => createHmac("sha256", secret).update(`slack-install:${text}`).digest("base64url");

  return {
    create() {
      const text = `${randomBytes(16).toString("base64url")}.${Math.ceil(now() + STATE_MS)}`;
      return `${text}.${sign(text)}`;
    },
    isGood(state) {
      const [, text = "", expiresAt = "", signature = ""] = /^([\w-]{22}\.(\d{1,16}))\.([\w-]+)$/.exec(state) ?? [];
      return isSame(signature, sign(text)) && Number(expiresAt) > now();
    },
  };
}

/** Takes as long for a wrong guess that begins well as for any other. */
function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
