import { expect, onTestFinished, test } from "vitest";
import { checkMcp } from "../../src/doctor/mcp.ts";
import { address, startCountingServer, toMcpConfig } from "../support/mcp-world.ts";

test("the doctor tries every tool server, and lists what it offers", async () => {
  const counter = await startCountingServer();
  onTestFinished(counter.close);
  const none = { type: "stdio", command: "/no/such-program", args: [], env: {}, cwd: undefined } as const;
  expect(
    await checkMcp({
      servers: [
        toMcpConfig("shop", address(counter.url), { channels: ["slack"] }),
        toMcpConfig("silent", address(counter.url), { allow: [] }),
        toMcpConfig("none", none),
      ],
      refused: ['server "odd": needs either "command" or "url"'],
    }),
  ).toEqual([
    {
      ok: false,
      what: 'Left out: server "odd": needs either "command" or "url".',
      fix: "Check its entry in MCP_CONFIG.",
    },
    { ok: true, what: "shop answers, with 2 tools (buy, count); people are asked before 1 of them." },
    { ok: false, what: "silent answers, and offers no tool.", fix: "Check tools.allow and tools.deny." },
    {
      ok: false,
      what: expect.stringMatching(/^none cannot be reached: .*ENOENT/),
      fix: "Check its entry in MCP_CONFIG.",
    },
  ]);
  expect(counter.marks).toEqual([]);
});
