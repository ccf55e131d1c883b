import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Keyv } from "keyv";
import type { Logger } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSlackApi } from "../../../../adapters/slack/api/client.ts";
import { createGrants } from "../../../../adapters/slack/install/grants.ts";
import { createInstallations } from "../../../../adapters/slack/install/installations.ts";
import { createOAuth, createStates, STATE_MS } from "../../../../adapters/slack/install/oauth.ts";
import { createLogger } from "../../../../src/log/log.ts";
import { startSlack } from "../../../simulators/slack/slack.ts";
import { recordingLog, silent } from "../../../support/log.ts";

const signal = new AbortController().signal;

async function startInstalling(changes: { clientSecret?: string; log?: Logger } = {}) {
  const slack = await startSlack();
  const { log: recording, lines } = recordingLog();
  const { log = recording } = changes;
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const publicUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { clientId, apiUrl, now } = slack;
  const grants = createGrants({ apiUrl, clientId, clientSecret: changes.clientSecret ?? slack.clientSecret });
  const installations = createInstallations({
    store: new Keyv(),
    encryptionKey: randomBytes(32),
    grants,
    log,
    now,
  });
  const app = createOAuth({
    clientId,
    stateSecret: "a secret for states",
    publicUrl,
    authorizeUrl: slack.authorizeUrl,
    scopes: ["chat:write", "commands"],
    grants,
    installations,
    used: new Keyv(),
    log,
    now,
  });
  const answer = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  server.on("request", (request, response) => void answer(request, response));

  /** Opens the install page in a browser that has nothing of us yet. */
  async function begin() {
    const page = await fetch(`${publicUrl}/slack/install`);
    const text = await page.text();
    const link = /href="([^"]+authorize[^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const [cookie = ""] = page.headers.getSetCookie();
    return { page, text, link: new URL(link), setCookie: cookie, cookie: cookie.split(";")[0] ?? "" };
  }

  /** Agrees at Slack. Resolves to where that leads back to. */
  async function agree(link: URL): Promise<URL> {
    const answer = await fetch(link, { redirect: "manual" });
    return new URL(answer.headers.get("location") ?? "");
  }

  async function comeBack(url: URL, cookie: string) {
    const answer = await fetch(url, { headers: { cookie } });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  }

  async function install() {
    const { link, cookie } = await begin();
    return comeBack(await agree(link), cookie);
  }

  return { slack, lines, publicUrl, installations, begin, agree, comeBack, install };
}

describe("the install page", () => {
  test("leads to Slack with what the bot asks for, and binds the browser", async () => {
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

  test("sends its cookie over https alone where it is reached that way", async () => {
    const app = createOAuth({
      clientId: "1.2",
      stateSecret: "s",
      publicUrl: "https://bot.example/",
      authorizeUrl: "https://slack.com/oauth/v2/authorize",
      scopes: ["commands"],
      grants: { exchange: () => Promise.reject(new Error()), identify: () => Promise.reject(new Error()) },
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

describe("an installation", () => {
  test("is kept, and says so", async () => {
    const { slack, install, installations, lines } = await startInstalling();
    const { status, text } = await install();
    const { id, name, bot, botToken } = slack.workspace;
    expect([status, text.includes(name)]).toEqual([200, true]);
    // In a cloud of its own, such as GovSlack, the bot is opened there too.
    expect(text).toContain(`${new URL("/app_redirect", slack.authorizeUrl).href}?app=`);
    const workspace = { teamId: id, botUserId: bot.id, botId: bot.botId, token: botToken };
    expect(await installations.find(id, signal)).toEqual(workspace);
    expect(JSON.stringify(lines)).not.toMatch(/xox|code-/);
  });

  test("is completed once", async () => {
    const { begin, agree, comeBack } = await startInstalling();
    const { link, cookie } = await begin();
    const back = await agree(link);
    expect((await comeBack(back, cookie)).status).toBe(200);
    expect((await comeBack(back, cookie)).status).toBe(400);
  });

  test("is not completed in another browser, with another state, or without a code", async () => {
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

  test("that nobody agreed to, or that Slack refuses, says so in plain words", async () => {
    const { begin, agree, comeBack, lines } = await startInstalling({ clientSecret: "wrong" });
    const first = await begin();
    const denied = await agree(first.link);
    denied.searchParams.delete("code");
    denied.searchParams.set("error", "access_denied");
    expect((await comeBack(denied, first.cookie)).text).toContain("Nobody agreed");
    const second = await begin();
    const { status, text } = await comeBack(await agree(second.link), second.cookie);
    expect([status, text.includes("Slack did not complete it")]).toEqual([502, true]);
    expect(lines.find(({ code }) => code === "bad_client_secret")).toBeDefined();
    expect(JSON.stringify(lines)).not.toMatch(/"wrong"|code-/);
  });

  test("leaves no word of an address, of Slack's or of a workspace's name in a line above debug", async () => {
    const said: string[] = [];
    const log = createLogger({ level: "debug", secrets: [], destination: { write: (line) => void said.push(line) } });
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

  test("shows nothing that came with the address as markup", async () => {
    const { publicUrl, comeBack } = await startInstalling();
    const url = new URL(`${publicUrl}/slack/oauth_redirect?error=<script>alert(1)</script>&state=<b>&code=<i>`);
    expect((await comeBack(url, "")).text).not.toMatch(/<script>|<b>|<i>/);
  });
});

describe("several workspaces", () => {
  test("never have a call made with another one's token", async () => {
    const { slack, install, installations } = await startInstalling();
    const beta = slack.addWorkspace("Beta");
    const gamma = slack.addWorkspace("Gamma");
    const workspaces = [slack.workspace, beta, gamma];
    for (const workspace of workspaces) {
      slack.oauth.installInto(workspace);
      await install();
    }
    const tokenOf = async (teamId: string) => (await installations.find(teamId, signal))?.token;
    const api = createSlackApi({ apiUrl: slack.apiUrl, tokenOf, now: slack.now });
    const from = slack.requests.length;
    const calls = Array.from({ length: 30 }, (_, index) => workspaces[index % 3] ?? beta);
    const answers = await Promise.all(
      calls.map(async ({ id }) => ({ id, answer: await api.call(id, "auth.test", { meant: id }, signal) })),
    );
    expect(answers.filter(({ id, answer }) => answer["team_id"] !== id)).toEqual([]);
    // The workspace of a call is the one its token belongs to.
    const wrong = slack.requests.slice(from).filter(({ workspaceId, args }) => workspaceId !== args["meant"]);
    expect(wrong).toEqual([]);
  });

  test("go on with the token that took the place of the one that expired", async () => {
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
});

test("a state is good until it is old", () => {
  let now = 1_000_000;
  const states = createStates("secret", () => now);
  const state = states.create();
  expect(states.isGood(state)).toBe(true);
  now += STATE_MS;
  expect(states.isGood(state)).toBe(false);
});

test("no two states are the same", () => {
  const states = createStates("secret", () => 0);
  expect(states.create()).not.toBe(states.create());
});

test("a state of another secret, with more time, changed or made up is not good", () => {
  const states = createStates("secret", () => 1_000_000);
  const state = states.create();
  const [nonce, expiresAt, signature] = state.split(".");
  for (const forged of [
    createStates("other", () => 1_000_000).create(),
    `${nonce}.${Number(expiresAt) + 1}.${signature}`,
    `${nonce}.${expiresAt}.`,
    `${nonce}.${expiresAt}`,
    `${state}x`,
    state.slice(1),
    "",
    "..",
  ]) {
    expect(states.isGood(forged)).toBe(false);
  }
});
