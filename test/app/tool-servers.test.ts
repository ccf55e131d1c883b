import { expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { program, speaker, toMcpConfig } from "../../lab/support/mcp-world.ts";
import { fakeServices } from "../../lab/support/services.ts";
import { type InForceDeps, readInForce } from "../../src/app/settings-in-force.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import { readConfig } from "../support/config.ts";

test("the dashboard shows which tool servers are ready, and why the others are not", async () => {
  const code = `
    if (method === "initialize") say({ id, result: initialized });
    else if (id !== undefined) say({ id, result: { tools: [{ name: "buy", inputSchema: { type: "object" } }] } });`;
  const crashing = program("--input-type=commonjs", ["-e", 'throw new Error("no API key")']);
  const configs = [toMcpConfig("shop", speaker(code), { channels: ["slack"] }), toMcpConfig("wiki", crashing)];
  const servers = createMcpServers(configs, silent);
  onTestFinished(() => servers.close());
  await servers.tried();
  const parts = await readInForce(
    fakeServices<InForceDeps>({
      config: readConfig({}),
      policy: () => ({}),
      toolServers: () => [...configs, toMcpConfig("new", crashing)],
      toolReports: () => servers.report(),
      settings: { list: async () => [] },
      chatRules: { read: async () => [] },
      schedules: { list: async () => [] },
      now: Date.now,
      policyWarnings: () => [],
      audit: { read: async () => [] },
      names: { place: async ({ channelId }) => ({ text: channelId }) },
    }),
  );
  const rows = parts
    .find(({ title }) => title === "Tool servers")
    ?.rows.map(({ name, value }) => [name, value.split("\n")[1]]);
  expect(rows).toEqual([
    ["shop", "Now: ready, tools: 1"],
    ["wiki", "Now: its program exited with code 1: Error: no API key"],
    ["new", undefined],
  ]);
});
