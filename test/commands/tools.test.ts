import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createToolsCommand, type ToolServer } from "../../src/commands/tools.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { createAccess } from "../../src/policy/access.ts";
import type { SettingsChange } from "../../src/policy/audit.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { ada, command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";

const buyer = { name: "shop__buy", approval: { server: "shop" } };
const shop: ToolServer = { name: "shop", state: "ready", tools: [{ name: "shop__count" }, buyer], prompts: [] };

function start(servers: ToolServer[], policy: Policy = {}) {
  const changes: SettingsChange[] = [];
  const audit = { note: async (change: SettingsChange) => changes.push(change) > 0 };
  const access = createAccess({ policy: () => policy, chatRules: { read: async () => [] } });
  const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  const settings = createSettings({ open, inTurn, ttlMs: 60_000, log: silent });
  const { sink, texts } = fakePlatform();
  const tools = createToolsCommand({ own: ["recall"], serversOf: () => servers, settings, access, audit });
  const say = async (text = "", author = ada) => {
    await tools.run(command("tools", text, { author }), sink, new AbortController().signal);
    return texts().at(-1);
  };
  return { say, settings, changes };
}

describe("/tools", () => {
  test("lists what can be used in a place, what asks first, what is away, and how prompts are written", async () => {
    const { say } = start([
      { ...shop, prompts: ["!shop:restock <what>"] },
      { name: "wiki", state: "failed", tools: [], prompts: [] },
      { name: "code", state: "connecting", tools: [], prompts: [] },
    ]);
    const hint = "`/tools off` and a server's name switches it off in this channel, `/tools on` and the name on again.";
    expect(await say()).toBe(
      [
        "My own: `recall`.",
        "Servers, with the number of their tools: `shop` (2), `wiki` (away), `code` (starting).",
        "`shop`: `count`, `buy` (asks first). Prompts to send me as a message: `!shop:restock <what>`.",
        hint,
      ].join("\n"),
    );
  });

  test("stays one message however many tools there are", async () => {
    const tools = Array.from({ length: 500 }, (_, index) => ({ name: `shop__tool-${index}` }));
    expect((await start([{ ...shop, tools }]).say())?.length).toBeLessThan(1_700);
  });

  test("names every server and counts its tools, however many tools the first ones have", async () => {
    const servers = Array.from({ length: 20 }, (_, index) => ({
      ...shop,
      name: `server-${index}`,
      tools: Array.from({ length: 30 + index }, (_, tool) => ({ name: `server-${index}__a-tool-of-number-${tool}` })),
    }));
    const list = await start(servers).say();
    for (const [index, { name }] of servers.entries()) expect(list).toContain(`\`${name}\` (${30 + index})`);
    expect(list?.split("\n").filter((line) => line === "…")).toEqual([]);
    expect(list?.length).toBeLessThan(1_700);
  });

  test("switches a server off and on again in the channel, for those who may change it", async () => {
    const { say, settings } = start([shop]);
    const reply = { platform: "test", channelId: "general" };
    expect(await say("off Shop", { ...ada, mayConfigure: false })).toMatch(/^Only people who manage/);
    expect(await settings.read(reply)).toEqual({ isKnown: true });
    expect(await say("off Shop")).toBe(
      "From the next message on I do not use `shop` in this channel; `/tools on shop` takes that back.",
    );
    expect(await settings.read(reply)).toEqual({ serversOff: ["shop"], isKnown: true });
    expect(await say()).toContain(" `shop` (off here).\n");
    expect(await say("on shop")).toBe("From the next message on I may use `shop` in this channel.");
    expect(await settings.read(reply)).toEqual({ isKnown: true });
    expect(await say("off shed")).toBe("There is no server `shed` here, only `shop`.");
  });

  test("lists only what the person may use", async () => {
    const access = { rules: [{ deny: ["tool:shop__buy", "tool:recall"] }] };
    expect(await start([shop], { access }).say()).toMatch(/^My own: nothing\.\n.*: `shop` \(1\)\.\n`shop`: `count`\./);
  });

  test("names no server and no prompt that the person may not use, and none to switch to who may switch none", async () => {
    const servers = [{ ...shop, prompts: ["!shop:restock <what>", "!shop:price"] }];
    const only = (deny: string[]) => start(servers, { access: { rules: [{ deny }] } });
    expect(await only(["tool:shop__restock"]).say()).toMatch(/`count`.*: `!shop:price`\.\n/);
    expect(await only(["server:shop"]).say()).toBe("My own: `recall`.");
    expect(await start(servers).say("off shed", { ...ada, mayConfigure: false })).toMatch(/^Only people who manage/);
  });

  test("notes what was switched", async () => {
    const { say, changes } = start([shop]);
    await say("off shop");
    expect(changes).toMatchObject([{ what: "tools", before: "shop on", after: "shop off" }]);
  });
});
