import { expect, onTestFinished, test } from "vitest";
import { address, program, startCountingServer, toMcpConfig } from "../../lab/support/mcp-world.ts";
import { checkMcp } from "../../src/doctor/mcp.ts";

test("the doctor connects to every MCP server, and lists its tools", async () => {
  const counter = await startCountingServer();
  onTestFinished(counter.close);
  const none = { type: "stdio", command: "/no/such-program", args: [], env: {}, cwd: undefined } as const;
  expect(
    await checkMcp({
      path: "./mcp.json",
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
      fix: "Check its entry in ./mcp.json.",
    },
    { ok: true, what: "shop answers, with 2 tools (buy, count); people are asked before 1 of them." },
    { ok: false, what: "silent answers but offers no tools.", fix: "Check tools.allow and tools.deny." },
    {
      ok: false,
      what: expect.stringMatching(/^none cannot be reached: .*ENOENT/),
      fix: "Check its entry in ./mcp.json.",
    },
  ]);
  expect(counter.marks).toEqual([]);
});

const NPM_WORDS = `npm warn config x
npm error code E404
npm error 404 Not Found - GET https://registry.example/tracker - Not found
npm error 404 Note that you can also install from a tarball: an error is likely.
npm error A complete log of this run can be found in: /tmp/x.log`;

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
  [
    "npm cannot fetch",
    `console.error(${JSON.stringify(NPM_WORDS)}); process.exitCode = 1`,
    "its program exited with code 1: npm error 404 Not Found - GET https://registry.example/tracker - Not found",
  ],
  ["says nothing", "process.exit(0)", "its program exited with code 0"],
  ["is killed", 'process.kill(process.pid, "SIGKILL")', "its program was killed by SIGKILL"],
])("the doctor shows why a program that %s did not start", async (_, code, problem) => {
  const transport = program("--input-type=commonjs", ["-e", code], { KEY: "secret-value" });
  expect(await checkMcp({ path: "mcp.json", servers: [toMcpConfig("shop", transport)], refused: [] })).toMatchObject([
    { ok: false, what: `shop cannot be reached: ${problem}.` },
  ]);
});

test("the doctor names an MCP server that does not answer in time, with its last line, and still lists the others", async () => {
  const counter = await startCountingServer();
  onTestFinished(counter.close);
  const silent = program("--input-type=module", ["-e", 'console.error("fetching tracker"); process.stdin.resume()']);
  const fetched = { type: "stdio", command: "/no/npx", args: ["-y", "x"], env: {}, cwd: undefined } as const;
  const servers = [
    toMcpConfig("slow", silent),
    toMcpConfig("fetched", fetched),
    toMcpConfig("shop", address(counter.url)),
  ];
  const found = await checkMcp({ path: "./mcp.json", servers, refused: [] }, 4_000);
  expect(found).toMatchObject([
    { ok: false, what: "slow cannot be reached: it did not answer within 4 s; its last line: fetching tracker." },
    { ok: false, fix: expect.stringContaining("start it with node") },
    { ok: true, what: expect.stringContaining("shop answers") },
  ]);
});
