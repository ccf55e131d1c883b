import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { createSeveralWorkspaces } from "../../../../adapters/slack/install/several-workspaces.ts";
import type { Organisation, Workspace } from "../../../../lab/slack-sim/world.ts";
import { silent } from "../../../../lab/support/log.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { type Slack, startSlack } from "../../../support/slack.ts";
import { draft, signal, startAdapter } from "../stage.ts";
import { createBrowser, startServer } from "./browser.ts";

async function startInstalled(into?: (slack: Slack) => Workspace | Organisation) {
  const slack = await startSlack();
  const erased: string[] = [];
  const stores = new Map<string, Keyv>();
  const { publicUrl, serve } = await startServer();
  const several = createSeveralWorkspaces({
    clientId: slack.clientId,
    clientSecret: slack.clientSecret,
    stateSecret: "a secret for states",
    encryptionKey: randomBytes(32),
    publicUrl,
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
  serve(several.app);
  if (!("workspaces" in several.installed)) throw new Error("There is no list of workspaces.");
  const { workspaces } = several.installed;

  const browser = createBrowser(publicUrl);
  const install = async () => expect((await browser.install()).status).toBe(200);
  if (into !== undefined) slack.oauth.installInto(into(slack));
  await install();
  const { id } = slack.workspace;
  return { slack, several, erased, install, begin: browser.begin, id, find: () => workspaces.find(id, signal) };
}

describe("a workspace that installs the bot", () => {
  test("a workspace grants the bot's scopes, and is found after it installed the bot", async () => {
    const { begin, slack, find, id } = await startInstalled();
    expect(await find()).toMatchObject({ teamId: id, token: slack.workspace.botToken });
    const { text } = await begin();
    expect(text).toContain(`${new URL(slack.authorizeUrl).href}?`);
    expect(text).toContain("app_mentions%3Aread");
  });

  test("uninstalling the bot erases everything about the workspace", async () => {
    const { several, erased, find, id, slack } = await startInstalled();
    await several.onUninstalled(id, slack.now() + 1_000, "revoked");
    expect([await find(), erased]).toEqual([undefined, []]);
    await several.onUninstalled(id, slack.now() + 1_000, "uninstalled");
    expect(erased).toEqual([id]);
  });

  test("a workspace that reinstalled the bot before Slack reported the uninstall keeps everything", async () => {
    const { slack, several, erased, install, find, id } = await startInstalled();
    const endedAt = slack.now();
    slack.advance(60_000);
    await install();
    await several.onUninstalled(id, endedAt, "uninstalled");
    expect([(await find())?.teamId, erased]).toEqual([id, []]);
  });
});

describe("an organisation that installed the bot for all its workspaces", () => {
  async function startOrganisation() {
    const world: { bridge?: Workspace; engine?: Workspace } = {};
    const started = await startInstalled((slack) => {
      const starship = slack.addOrganisation("Starship");
      world.bridge = slack.addWorkspace("Bridge", undefined, starship);
      world.engine = slack.addWorkspace("Engine", undefined, starship);
      return starship;
    });
    const { bridge, engine } = world;
    const starship = bridge?.organisation;
    if (starship === undefined || bridge === undefined || engine === undefined) throw new Error("There is no world.");
    const { installed } = started.several;
    // All processes of a service share these.
    const adapter = await startAdapter(started.slack, { installed, onUninstalled: started.several.onUninstalled });
    return { ...started, ...adapter, starship, bridge, engine };
  }

  test("the bot works in each workspace of an organisation, with one token", async () => {
    const { slack, adapter, events, bridge, engine, starship } = await startOrganisation();
    for (const workspace of [bridge, engine]) {
      const ada = slack.user({ name: "Ada", workspace });
      const channel = slack.channel({ name: "general", workspace, members: [ada] });
      ada.mention(channel, "hello");
      const prefix = `slack:${workspace.id}:${channel.id}:`;
      const found = () => events.find(({ conversationId }) => conversationId.startsWith(prefix));
      const { reply, author } = await slack.until(found, "the question");
      expect(author).toMatchObject({ id: `${starship.id}/${ada.id}`, name: "Ada" });
      const sink = adapter.sink(reply, NO_RIGHT);
      await sink.post(draft("An answer."), `nonce ${workspace.id}`, signal);
      expect(slack.texts(channel)).toEqual(["An answer."]);
    }
    const posts = slack.requests.filter(({ method }) => method === "chat.postMessage");
    expect(posts.map(({ workspaceId }) => workspaceId)).toEqual([bridge.id, engine.id]);
  });

  test("a process that received nothing from a workspace answers it too", async () => {
    const { slack, several, message, bridge } = await startOrganisation();
    const ada = slack.user({ name: "Ada", workspace: bridge });
    ada.dm("hello");
    const { reply } = await message(0);
    const other = await startAdapter(slack, { installed: several.installed, listens: false });
    await other.adapter.sink(reply, NO_RIGHT).post(draft("Later."), "nonce", signal);
    expect(slack.texts(ada.direct())).toEqual(["Later."]);
  });

  test("a command or a button of an organisation works, although it names no team", async () => {
    const { slack, adapter, event, message, bridge } = await startOrganisation();
    const ada = slack.user({ name: "Ada", workspace: bridge });
    const channel = slack.channel({ name: "general", workspace: bridge, members: [ada] });
    expect(await ada.command("/help", "", channel)).toMatchObject({ isAcknowledged: true });
    expect(await event(0)).toMatchObject({ kind: "command", name: "help" });
    ada.dm("hello");
    const { reply } = await message(1);
    const buttons = [{ action: "retry" as const, turnId: "turn", label: "Try again" }];
    await adapter.sink(reply, NO_RIGHT).post(draft("An answer.", { buttons }), "nonce", signal);
    const [answer] = slack.answers(ada.direct());
    const [pressed] = (answer?.content.blocks ?? []).flatMap(
      ({ elements = [] }) => elements as { action_id: string }[],
    );
    if (answer === undefined || pressed === undefined) throw new Error("There is no button.");
    expect(await ada.press(answer, pressed.action_id)).toMatchObject({ isAcknowledged: true });
    expect(await event(2)).toMatchObject({ kind: "action", action: "retry", turnId: "turn" });
  });

  test("removing the bot from one workspace erases that workspace, and uninstalling erases all", async () => {
    const { slack, erased, several, bridge, engine, starship, message } = await startOrganisation();
    for (const [index, workspace] of [bridge, engine].entries()) {
      slack.user({ name: "Ada", workspace }).dm("hello");
      await message(index);
    }
    slack.withdrawFrom(engine);
    await slack.acknowledged();
    expect(erased).toEqual([engine.id]);
    // The organisation's installation still exists.
    slack.user({ name: "Bob", workspace: bridge }).dm("still there?");
    await message(2);
    slack.uninstallFrom(starship);
    await slack.acknowledged();
    expect(erased).toEqual([engine.id, starship.id, bridge.id]);
    if (!("workspaces" in several.installed)) throw new Error("There is no list of workspaces.");
    expect(await several.installed.workspaces.find(bridge.id, signal, starship.id)).toBeUndefined();
  });
});
