import { expect, test } from "vitest";
import { createToolsCommand, type ToolServer } from "../../src/commands/tools.ts";
import { command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

async function list(servers: ToolServer[]): Promise<string | undefined> {
  const { sink, texts } = fakePlatform();
  await createToolsCommand(["recall"], () => servers).run(command("tools"), sink, new AbortController().signal);
  return texts()[0];
}

test("/tools lists what can be used in a place, what asks first, and what is away", async () => {
  const tools = [{ name: "shop__count" }, { name: "shop__buy", approval: { server: "shop" } }];
  const shown = await list([
    { name: "shop", problem: undefined, tools },
    { name: "wiki", problem: "its connection has ended", tools: [] },
  ]);
  expect(shown).toBe(
    "My own: `recall`.\n`shop`: `count`, `buy` (asks first).\n`wiki` cannot be used now: its connection has ended.",
  );
});

test("/tools stays one message however many tools there are", async () => {
  const tools = Array.from({ length: 500 }, (_, index) => ({ name: `shop__tool-${index}` }));
  expect((await list([{ name: "shop", problem: undefined, tools }]))?.length).toBeLessThan(1_600);
});
