import { expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { program, speaker, toMcpConfig } from "../../lab/support/mcp-world.ts";
import { fakeServices } from "../../lab/support/services.ts";
import { type InForceDeps, readInForce } from "../../src/app/settings-in-force.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import { readConfig } from "../support/config.ts";

/** The rows of the settings page, by the title of their part. */
async function readRows(given: Parameters<typeof fakeServices<InForceDeps>>[0]) {
  const parts = await readInForce(
    fakeServices<InForceDeps>({
      config: readConfig({}),
      policy: () => ({}),
      toolServers: () => [],
      toolReports: () => [],
      settings: { list: async () => [] },
      chatRules: { read: async () => [] },
      schedules: { list: async () => [] },
      now: Date.now,
      policyWarnings: () => [],
      audit: { read: async () => [] },
      names: { place: async () => ({ text: "Slack · Acme · #general" }) },
      ...given,
    }),
  );
  return (wanted: string) => parts.find(({ title }) => title === wanted)?.rows;
}

test("the settings page has a row for each field of a policy section, and names the channels", async () => {
  const general = { platform: "slack", workspaceId: "T1", channelId: "C1" };
  const change = { number: 1, at: 0, ...general, authorId: "T1/U1", name: "Ada", what: "listen", after: "on" };
  const rowsOf = await readRows({
    policy: () => ({ quotas: { person: { day: { tokens: 500 } }, all: { month: { money: 5 } } } }),
    settings: { list: async () => [{ ...general, persona: "A tutor.\nPatient." }] },
    audit: { read: async () => [change] },
  });
  expect(rowsOf("Quotas")).toEqual([
    { name: "person", value: "day:\n  tokens: 500" },
    { name: "all", value: "month:\n  money: 5" },
  ]);
  expect(rowsOf("Channels")).toEqual([{ name: "Slack · Acme · #general", value: "Persona: A tutor.\n  Patient." }]);
  expect(rowsOf("Changes")).toMatchObject([{ value: "Ada at Slack · Acme · #general: listen: on" }]);
});

test("the dashboard shows which tool servers are ready, and why the others are not", async () => {
  const code = `
    if (method === "initialize") say({ id, result: initialized });
    else if (id !== undefined) say({ id, result: { tools: [{ name: "buy", inputSchema: { type: "object" } }] } });`;
  const crashing = program("--input-type=commonjs", ["-e", 'throw new Error("no API key")']);
  const configs = [toMcpConfig("shop", speaker(code), { channels: ["slack"] }), toMcpConfig("wiki", crashing)];
  const servers = createMcpServers(configs, silent);
  onTestFinished(() => servers.close());
  await servers.tried();
  const rowsOf = await readRows({
    toolServers: () => [...configs, toMcpConfig("new", crashing)],
    toolReports: () => servers.report(),
  });
  expect(rowsOf("Tool servers")?.map(({ name, value }) => [name, value.split("\n")[1]])).toEqual([
    ["shop", "Now: ready, tools: 1"],
    ["wiki", "Now: its program exited with code 1: Error: no API key"],
    ["new", undefined],
  ]);
});
