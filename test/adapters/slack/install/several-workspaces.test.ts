import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { createSeveralWorkspaces } from "../../../../adapters/slack/install/several-workspaces.ts";
import { startSlack } from "../../../simulators/slack/slack.ts";
import { silent } from "../../../support/log.ts";

const signal = new AbortController().signal;

async function startInstalled() {
  const slack = await startSlack();
  const erased: string[] = [];
  const stores = new Map<string, Keyv>();
  const several = createSeveralWorkspaces({
    clientId: slack.clientId,
    clientSecret: slack.clientSecret,
    stateSecret: "a secret for states",
    encryptionKey: randomBytes(32),
    publicUrl: "http://127.0.0.1:9",
    apiUrl: slack.apiUrl,
    open(namespace) {
      const store = stores.get(namespace) ?? new Keyv();
      stores.set(namespace, store);
      return store;
    },
    eraseWorkspace: async (teamId) => void erased.push(teamId),
    log: silent,
    now: slack.now,
  });
  if (!("workspaces" in several.installed)) throw new Error("There is no list of workspaces.");
  const { workspaces } = several.installed;

  async function install(): Promise<void> {
    const page = await several.app.request("http://127.0.0.1:9/slack/install");
    const [cookie = ""] = page.headers.getSetCookie();
    const link = /href="([^"]+authorize[^"]+)"/.exec(await page.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
    const back = (await fetch(link, { redirect: "manual" })).headers.get("location") ?? "";
    const done = await several.app.request(back, { headers: { cookie: cookie.split(";")[0] ?? "" } });
    expect(done.status).toBe(200);
  }

  await install();
  const { id } = slack.workspace;
  return { slack, several, erased, install, id, find: () => workspaces.find(id, signal) };
}

describe("a workspace", () => {
  test("is asked for what the bot needs, and is found once it installed it", async () => {
    const { several, slack, find, id } = await startInstalled();
    expect(await find()).toMatchObject({ teamId: id, token: slack.workspace.botToken });
    const page = await (await several.app.request("http://127.0.0.1:9/slack/install")).text();
    expect(page).toContain(`${new URL(slack.authorizeUrl).href}?client_id=`);
    expect(page).toContain("app_mentions%3Aread");
  });

  test("that uninstalls the bot is forgotten with everything that was kept of it", async () => {
    const { several, erased, find, id, slack } = await startInstalled();
    await several.onUninstalled(id, slack.now() + 1_000, "revoked");
    expect([await find(), erased]).toEqual([undefined, []]);
    await several.onUninstalled(id, slack.now() + 1_000, "uninstalled");
    expect(erased).toEqual([id]);
  });

  test("that installed the bot again before Slack told the end keeps everything", async () => {
    const { slack, several, erased, install, find, id } = await startInstalled();
    const endedAt = slack.now();
    slack.advance(60_000);
    await install();
    await several.onUninstalled(id, endedAt, "uninstalled");
    expect([(await find())?.teamId, erased]).toEqual([id, []]);
  });
});
