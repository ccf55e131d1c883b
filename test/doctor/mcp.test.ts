import { expect, onTestFinished, test } from "vitest";
import { checkMcp } from "../../src/doctor/mcp.ts";
import { address, program, startCountingServer, toMcpConfig } from "../support/mcp-world.ts";

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

test.each([
  [
    "throws",
    'throw new Error("no API key secret-value")',
    "its program exited with code 1: Error: no API key [redacted]",
  ],
  [
    "says why and exits",
    'console.error("\\nusage: x\\n"); process.exitCode = 3',
    "its program exited with code 3: usage: x",
  ],
  ["says nothing", "process.exit(0)", "its program exited with code 0"],
  ["is killed", 'process.kill(process.pid, "SIGKILL")', "its program was ended by SIGKILL"],
])("the doctor shows why a program that %s did not start", async (_, code, problem) => {
  const transport = program("--input-type=commonjs", ["-e", code], { KEY: "secret-value" });
  expect(await checkMcp({ servers: [toMcpConfig("shop", transport)], refused: [] })).toMatchObject([
    { ok: false, what: `shop cannot be reached: ${problem}.` },
  ]);
});
