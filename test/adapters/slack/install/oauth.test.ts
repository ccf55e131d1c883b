import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import type { Logger } from "pino";
import { describe, expect, test } from "vitest";
import { createSlackApi } from "../../../../adapters/slack/api/client.ts";
import { createInstallations, createRefresh } from "../../../../adapters/slack/install/installations.ts";
import { createOAuth } from "../../../../adapters/slack/install/oauth.ts";
import { recordingLog, silent } from "../../../../lab/support/log.ts";
import { createLogger } from "../../../../src/log/log.ts";
import { startSlack } from "../../../support/slack.ts";
import { createBrowser, startServer } from "./browser.ts";

const signal = new AbortController().signal;

async function startInstalling(changes: { clientSecret?: string; log?: Logger } = {}) {
  const slack = await startSlack();
  const { log: recording, lines } = recordingLog();
  const { log = recording } = changes;
  const { publicUrl, serve } = await startServer();
  const { clientId, apiUrl, now } = slack;
  const clientSecret = changes.clientSecret ?? slack.clientSecret;
  const installations = createInstallations({
    store: new Keyv(),
    encryptionKey: randomBytes(32),
    refresh: createRefresh(apiUrl, clientId, clientSecret),
    log,
    now,
  });
  const app = createOAuth({
    clientId,
    clientSecret,
    stateSecret: "a secret for states",
    publicUrl,
    apiUrl,
    scopes: ["chat:write", "commands"],
    installations,
    used: new Keyv(),
    log,
    now,
  });
  serve(app);
  return { slack, lines, publicUrl, installations, ...createBrowser(publicUrl) };
}

describe("the install page", () => {
  test("the install page links to Slack with the bot's scopes, and sets a cookie", async () => {
    const { begin, publicUrl, slack } = await startInstalling();
    const { page, link, setCookie } = await begin();
    expect(Object.fromEntries(link.searchParams)).toMatchObject({
      client_id: slack.clientId,
      scope: "chat:write,commands",
      redirect_uri: `${publicUrl}/slack/oauth_redirect`,
    });
    expect(setCookie).toMatch(/HttpOnly/i);
    expect(setCookie).toMatch(/SameSite=Lax/i);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("the cookie of the install page is secure if the service has an https address", async () => {
    const app = createOAuth({
      clientId: "1.2",
      clientSecret: "hush",
      stateSecret: "s",
      publicUrl: "https://bot.example/",
      apiUrl: "https://slack.com/api/",
      scopes: ["commands"],
      installations: { keep: async () => {} },
      used: new Keyv(),
      log: silent,
      now: Date.now,
    });
    const page = await app.request("https://bot.example/slack/install");
    expect(page.headers.getSetCookie()[0]).toMatch(/; Secure/i);
    expect(await page.text()).toContain(encodeURIComponent("https://bot.example/slack/oauth_redirect"));
  });
});

describe("installing the bot", () => {
  test("an installation is stored and confirmed", async () => {
    const { slack, install, installations, lines } = await startInstalling();
    const { status, text } = await install();
    const { id, name, bot, botToken } = slack.workspace;
    expect([status, text.includes(name)]).toEqual([200, true]);
    // The bot can also be opened in a separate Slack cloud, for example GovSlack.
    expect(text).toContain(`${new URL("/app_redirect", slack.authorizeUrl).href}?app=`);
    const workspace = { teamId: id, botUserId: bot.id, botId: bot.botId, token: botToken };
    expect(await installations.find(id, signal)).toEqual(workspace);
    expect(JSON.stringify(lines)).not.toMatch(/xox|code-/);
  });

  test("an organisation's installation is stored for all its workspaces, and the page says what remains to do", async () => {
    const { slack, install, installations } = await startInstalling();
    const starship = slack.addOrganisation("Starship");
    const bridge = slack.addWorkspace("Bridge", undefined, starship);
    slack.oauth.installInto(starship);
    const { status, text } = await install();
    expect([status, text.includes("Starship"), text.includes("workspaces/add")]).toEqual([200, true, true]);
    expect(await installations.find(bridge.id, signal)).toBeUndefined();
    const workspace = { teamId: bridge.id, enterpriseId: starship.id, token: starship.botToken };
    expect(await installations.find(bridge.id, signal, starship.id)).toMatchObject(workspace);
    expect(await installations.find(bridge.id, signal)).toMatchObject(workspace);
    expect(await installations.find(slack.workspace.id, signal)).toBeUndefined();
  });

  test("an installation link works once", async () => {
    const { begin, agree, comeBack } = await startInstalling();
    const { link, cookie } = await begin();
    const back = await agree(link);
    expect((await comeBack(back, cookie)).status).toBe(200);
    expect((await comeBack(back, cookie)).status).toBe(400);
  });

  test("an installation does not work in another browser, with another state, or without a code", async () => {
    const { slack, begin, agree, comeBack, installations } = await startInstalling();
    const { link, cookie } = await begin();
    const back = await agree(link);
    const other = await begin();
    const changed = (name: string, value: string | undefined) => {
      const url = new URL(back);
      if (value === undefined) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
      return url;
    };
    for (const [url, sent] of [
      [back, other.cookie],
      [back, ""],
      [changed("state", "made-up"), cookie],
      [changed("state", undefined), ""],
      [changed("state", "x.1.y"), "palaver-slack-install=x.1.y"],
      [changed("code", undefined), cookie],
    ] as const) {
      expect(await comeBack(url, sent)).toMatchObject({ status: 400, text: expect.stringContaining("/slack/install") });
    }
    expect(await installations.find(slack.workspace.id, signal)).toBeUndefined();
  });

  test("an installation that a person cancels, or Slack refuses, fails with a plain sentence", async () => {
    const { begin, agree, comeBack, lines } = await startInstalling({ clientSecret: "wrong" });
    const first = await begin();
    const denied = await agree(first.link);
    denied.searchParams.delete("code");
    denied.searchParams.set("error", "access_denied");
    expect((await comeBack(denied, first.cookie)).text).toContain("nothing was installed");
    const second = await begin();
    const { status, text } = await comeBack(await agree(second.link), second.cookie);
    expect([status, text.includes("finish the installation")]).toEqual([502, true]);
    expect(lines.find(({ code }) => code === "bad_client_secret")).toBeDefined();
    expect(JSON.stringify(lines)).not.toMatch(/"wrong"|code-/);
  });

  test("no log line above debug contains an address, an error of Slack's or the name of a workspace", async () => {
    const said: string[] = [];
    const log = createLogger({
      level: "debug",
      secrets: [],
      tokens: [],
      destination: { write: (line) => void said.push(line) },
    });
    const { slack, publicUrl, install, begin, agree, comeBack } = await startInstalling({ log });
    slack.workspace.name = "Marmalade";
    expect((await install()).text).toContain("Marmalade");
    const { link, cookie } = await begin();
    const back = await agree(link);
    back.searchParams.set("code", "marmalade");
    expect((await comeBack(back, cookie)).status).toBe(502);
    await comeBack(new URL(`${publicUrl}/slack/oauth_redirect?error=marmalade&state=marmalade&code=marmalade`), "");
    const lines = said.map((line) => JSON.parse(line) as { level: string; msg: string });
    expect(lines.map(({ msg }) => msg)).toEqual(expect.arrayContaining([expect.stringMatching(/failed/)]));
    expect(JSON.stringify(lines.filter(({ level }) => level !== "debug"))).not.toMatch(/marmalade/i);
  });

  test("the result page escapes everything from its address", async () => {
    const { publicUrl, comeBack } = await startInstalling();
    const url = new URL(`${publicUrl}/slack/oauth_redirect?error=<script>alert(1)</script>&state=<b>&code=<i>`);
    expect((await comeBack(url, "")).text).not.toMatch(/<script>|<b>|<i>/);
  });
});

test("calls continue with the new token when the old one expires", async () => {
  const { slack, install, installations } = await startInstalling();
  slack.oauth.rotate(12 * 3_600);
  await install();
  const { id } = slack.workspace;
  const tokenOf = async (teamId: string) => (await installations.find(teamId, signal))?.token;
  const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf, now: slack.now });
  await api.call(id, "auth.test", {}, signal);
  slack.advance(13 * 3_600_000);
  expect(await api.call(id, "auth.test", {}, signal)).toMatchObject({ team_id: id });
  expect(slack.requests.filter(({ method }) => method === "oauth.v2.access")).toHaveLength(2);
});
