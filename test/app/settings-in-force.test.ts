import { expect, test } from "vitest";
import { fakeServices } from "../../lab/support/services.ts";
import { type InForceDeps, readInForce } from "../../src/app/settings-in-force.ts";
import { readConfig } from "../support/config.ts";

test("the settings page has a row for each field of a policy section, and names the channels", async () => {
  const general = { platform: "slack", workspaceId: "T1", channelId: "C1" };
  const change = { number: 1, at: 0, ...general, authorId: "T1/U1", name: "Ada", what: "listen", after: "on" };
  const parts = await readInForce(
    fakeServices<InForceDeps>({
      config: readConfig({}),
      policy: () => ({ quotas: { person: { day: { tokens: 500 } }, all: { month: { money: 5 } } } }),
      toolServers: () => [],
      toolReports: () => [],
      settings: { list: async () => [{ ...general, persona: "A tutor.\nPatient." }] },
      chatRules: { read: async () => [] },
      schedules: { list: async () => [] },
      now: Date.now,
      policyWarnings: () => [],
      audit: { read: async () => [change] },
      names: { place: async () => ({ text: "Slack · Acme · #general" }) },
    }),
  );
  const rowsOf = (wanted: string) => parts.find(({ title }) => title === wanted)?.rows;
  expect(rowsOf("Quotas")).toEqual([
    { name: "person", value: "day:\n  tokens: 500" },
    { name: "all", value: "month:\n  money: 5" },
  ]);
  expect(rowsOf("Channels")).toEqual([{ name: "Slack · Acme · #general", value: "Persona: A tutor.\n  Patient." }]);
  expect(rowsOf("Changes")).toMatchObject([{ value: "Ada at Slack · Acme · #general: listen: on" }]);
});
