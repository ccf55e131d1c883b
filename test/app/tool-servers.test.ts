import { expect, onTestFinished, test } from "vitest";
import { readInForce } from "../../src/app/settings-in-force.ts";
import { readConfig } from "../../src/config/config.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import { silent } from "../support/log.ts";
import { program, speaker, toMcpConfig } from "../support/mcp-world.ts";

test("the dashboard shows which tool servers are ready, and why the others are not", async () => {
  const code = `
    if (method === "initialize") say({ id, result: initialized });
    else if (id !== undefined) say({ id, result: { tools: [{ name: "buy", inputSchema: { type: "object" } }] } });`;
  const crashing = program("--input-type=commonjs", ["-e", 'throw new Error("no API key")']);
  const configs = [toMcpConfig("shop", speaker(code), { channels: ["slack"] }), toMcpConfig("wiki", crashing)];
  const servers = createMcpServers(configs, silent);
  onTestFinished(() => servers.close());
  await servers.tried();
  const parts = await readInForce({
    config: readConfig({}),
    policy: () => ({}),
    toolServers: () => [...configs, toMcpConfig("new", crashing)],
    toolReports: () => servers.report(),
    settings: { list: async () => [] },
    chatRules: { read: async () => [] },
    policyWarnings: () => [],
    audit: { read: async () => [] },
  });
  const rows = parts
    .find(({ title }) => title === "Tool servers")
    ?.rows.map(({ name, value }) => [name, value.split("\n")[1]]);
  expect(rows).toEqual([
    ["shop", "Now: ready, tools: 1"],
    ["wiki", "Now: its program exited with code 1: Error: no API key"],
    ["new", undefined],
  ]);
});
