import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ada, command } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { fakeServices } from "../../lab/support/services.ts";
import type { CommandDeps, ToolServer } from "../../src/commands/command.ts";
import { TOOLS } from "../../src/commands/tools.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { createAccess } from "../../src/policy/access.ts";
import type { SettingsChange } from "../../src/policy/audit.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";

const buyer = { name: "shop__buy", approval: { server: "shop" } };
const shop: ToolServer = { name: "shop", state: "ready", tools: [{ name: "shop__count" }, buyer], prompts: [] };

function start(servers: ToolServer[], policy: Policy = {}) {
  const changes: SettingsChange[] = [];
  const audit = { note: async (change: SettingsChange) => changes.push(change) > 0 };
  const access = createAccess({ policy: () => policy, chatRules: { read: async () => [] } });
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  const settings = createSettings({ open, inTurn, now: Date.now, ttlMs: 60_000, log: silent });
  const { sink, texts } = fakePlatform();
  const deps = { toolNames: ["recall"], serversOf: () => servers, settings, access, audit };
  const run = TOOLS.create?.(fakeServices<CommandDeps>(deps));
  const say = async (text = "", author = ada) => {
    await run?.(command("tools", text, { author }), sink, new AbortController().signal);
    return texts().at(-1);
  };
  return { say, settings, changes };
}

describe("/tools", () => {
  test("/tools lists the available tools, which ask first, unavailable servers and how to type prompts", async () => {
    const { say } = start([
      { ...shop, prompts: ["!shop:restock <what>"] },
      { name: "wiki", state: "failed", tools: [], prompts: [] },
      { name: "code", state: "connecting", tools: [], prompts: [] },
    ]);
    const hint =
      "To switch a server off in this channel, write `/tools off` and its name; `/tools on` switches it on again.";
    expect(await say()).toBe(
      [
        "My own: `recall`.",
        "Servers, with the number of their tools: `shop` (2), `wiki` (unavailable), `code` (starting).",
        "`shop`: `count`, `buy` (asks first). Prompts you can send me: `!shop:restock <what>`.",
        hint,
      ].join("\n"),
    );
  });

  test("/tools fits into one message, however many tools there are", async () => {
    const tools = Array.from({ length: 500 }, (_, index) => ({ name: `shop__tool-${index}` }));
    expect((await start([{ ...shop, tools }]).say())?.length).toBeLessThan(1_700);
  });

  test("/tools names every server and its number of tools, even if the first ones have very many", async () => {
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

  test("/tools switches a server off and on in the channel, for people who can change settings", async () => {
    const { say, settings } = start([shop]);
    const reply = { platform: "test", channelId: "general" };
    expect(await say("off Shop", { ...ada, mayConfigure: false })).toMatch(/^Only this channel's managers/);
    expect(await settings.read(reply)).toEqual({ isKnown: true });
    expect(await say("off Shop")).toBe(
      "From the next message on, I won't use `shop` in this channel; `/tools on shop` undoes this.",
    );
    expect(await settings.read(reply)).toEqual({ serversOff: ["shop"], isKnown: true });
    expect(await say()).toContain(" `shop` (off here).\n");
    expect(await say("on shop")).toBe("From the next message on, I can use `shop` in this channel.");
    expect(await settings.read(reply)).toEqual({ isKnown: true });
    expect(await say("off shed")).toBe("There's no tool server `shed` here, only `shop`.");
  });

  test("/tools lists only what the asker can use", async () => {
    const access = { rules: [{ deny: ["tool:shop__buy", "tool:recall"] }] };
    expect(await start([shop], { access }).say()).toMatch(/^My own: nothing\.\n.*: `shop` \(1\)\.\n`shop`: `count`\./);
  });

  test("/tools names no server or prompt that the asker can't use, and no server to people who can't switch it", async () => {
    const servers = [{ ...shop, prompts: ["!shop:restock <what>", "!shop:price"] }];
    const only = (deny: string[]) => start(servers, { access: { rules: [{ deny }] } });
    expect(await only(["tool:shop__restock"]).say()).toMatch(/`count`.*: `!shop:price`\.\n/);
    expect(await only(["server:shop"]).say()).toBe("My own: `recall`.");
    expect(await start(servers).say("off shed", { ...ada, mayConfigure: false })).toMatch(
      /^Only this channel's managers/,
    );
  });

  test("/tools writes what it switched to the audit log", async () => {
    const { say, changes } = start([shop]);
    await say("off shop");
    expect(changes).toMatchObject([{ what: "tools", before: "shop on", after: "shop off" }]);
  });
});
