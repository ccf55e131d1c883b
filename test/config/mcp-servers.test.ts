import { describe, expect, test } from "vitest";
import { readMcpFile, secretsOfMcp } from "../../src/config/mcp-servers.ts";

const ENV = { TRACKER_TOKEN: "tracker-secret", WIKI_TOKEN: "wiki-secret" };

function read(mcpServers: unknown, env: Record<string, string> = ENV) {
  return readMcpFile("tools.json", env, () => JSON.stringify({ mcpServers }));
}

describe("the file of the MCP servers", () => {
  test("mcp.json has the format of other programs, with environment variables in any string", () => {
    const { servers, problems, refused } = read({
      tracker: {
        command: "npx",
        args: ["-y", "${PACKAGE:-tracker-mcp}"],
        env: { TOKEN: "${TRACKER_TOKEN}" },
        tools: { allow: ["list"], deny: ["drop"] },
        channels: ["slack:C01", "local"],
      },
      wiki: {
        type: "http",
        url: "https://wiki.example/mcp",
        headers: { Authorization: "Bearer ${WIKI_TOKEN}" },
        approve: "always",
        timeoutSeconds: 5,
      },
      old: { command: "old", disabled: true, env: { A: "${NOT_THERE}" }, whatever: 1 },
    });
    expect([problems, refused]).toEqual([[], []]);
    expect(servers).toEqual([
      {
        name: "tracker",
        transport: { type: "stdio", command: "npx", args: ["-y", "tracker-mcp"], env: { TOKEN: "tracker-secret" } },
        allow: ["list"],
        deny: ["drop"],
        channels: ["slack:C01", "local"],
        approve: "acting",
        timeoutMs: 60_000,
      },
      {
        name: "wiki",
        transport: { type: "http", url: "https://wiki.example/mcp", headers: { Authorization: "Bearer wiki-secret" } },
        deny: [],
        approve: "always",
        timeoutMs: 5_000,
      },
    ]);
    expect(servers.flatMap(secretsOfMcp)).toEqual(["tracker-secret", "Bearer wiki-secret", "wiki-secret"]);
  });

  test("the program of an MCP server gets the network variables, which count as secret only if they contain a password", () => {
    const network = {
      NODE_EXTRA_CA_CERTS: "/etc/ca.pem",
      SSL_CERT_FILE: "/etc/all.pem",
      HTTPS_PROXY: "http://me:password@proxy.example",
      no_proxy: "intern.example",
      npm_config_registry: "https://npm.example",
    };
    const { servers } = read(
      { near: { command: "npx", env: { no_proxy: "own" } } },
      { ...network, HTTP_PROXY: "", GATEWAY_API_KEY: "key" },
    );
    expect(servers[0]?.transport).toMatchObject({ env: { ...network, no_proxy: "own" } });
    expect(servers[0]?.transport).not.toHaveProperty("env.GATEWAY_API_KEY");
    expect(servers.flatMap(secretsOfMcp)).toEqual(["http://me:password@proxy.example"]);
  });

  test("mcp.json can be written for another program, if its fields mean the same here", () => {
    const { servers, refused } = read({
      events: { type: "sse", url: "https://a.example/sse" },
      stream: { type: "streamable-http", url: "https://a.example/mcp" },
      editor: { command: "x", env: { A: "${env:TRACKER_TOKEN}" }, description: "Tracks.", autoApprove: ["list"] },
      asked: { command: "x", env: { A: "${input:token}" } },
    });
    expect(servers).toMatchObject([
      { transport: { type: "sse" } },
      { transport: { type: "http" } },
      { transport: { env: { A: "tracker-secret" } }, approve: "acting" },
    ]);
    expect(refused).toEqual([
      'server "asked": ${input:…} works only in an editor; use an environment variable instead',
    ]);
  });

  test.each([
    ["tools of Copilot", { command: "x", type: "local", tools: ["*"] }, { transport: { type: "stdio" } }],
    ["chosen tools", { command: "x", tools: ["a", "b"] }, { allow: ["a", "b"], deny: [] }],
    ["no tools", { command: "x", tools: [] }, { allow: [] }],
    ["tools of Gemini", { command: "x", includeTools: ["a"], excludeTools: ["b"] }, { allow: ["a"], deny: ["b"] }],
    [
      "tools of Windsurf",
      { command: "x", disabledTools: ["b"], alwaysAllow: ["a"] },
      { deny: ["b"], approve: "acting" },
    ],
    ["milliseconds", { command: "x", timeout: 30_000, trust: true }, { timeoutMs: 30_000, approve: "acting" }],
    ["seconds", { command: "x", timeout: 90 }, { timeoutMs: 90_000 }],
    ["ten hours", { command: "x", timeout: 36_000_000 }, { timeoutMs: 600_000 }],
    ["an own time beside it", { command: "x", timeout: 5, timeoutSeconds: 7 }, { timeoutMs: 7_000 }],
    ["httpUrl", { httpUrl: "https://a.example/mcp" }, { transport: { type: "http", url: "https://a.example/mcp" } }],
    [
      "both addresses",
      { httpUrl: "https://a.example/mcp", url: "https://a.example/sse" },
      { transport: { type: "http" } },
    ],
    ["serverUrl", { serverUrl: "https://a.example/sse" }, { transport: { type: "sse", url: "https://a.example/sse" } }],
    ["a transport", { url: "https://a.example/mcp", transport: "streamable_http" }, { transport: { type: "http" } }],
    ["a kind in other letters", { url: "https://a.example/x", transportType: "SSE" }, { transport: { type: "sse" } }],
    [
      "numbers",
      { command: "x", args: [7], env: { PORT: 80, ON: true } },
      { transport: { args: ["7"], env: { PORT: "80", ON: "true" } } },
    ],
    [
      "nulls and notes",
      { command: "x", args: null, cwd: null, url: null, $comment: "", _note: "" },
      { transport: { args: [] } },
    ],
  ])("mcp.json accepts what another client writes: %s", (_, entry, expected) => {
    const { servers, refused } = read({ one: entry });
    expect(refused).toEqual([]);
    expect(servers).toMatchObject([{ name: "one", ...expected }]);
  });

  test("mcp.json denies the tools that either of two fields denies, and accepts only lists in fields for tools", () => {
    const { servers, refused } = read({
      both: { command: "x", tools: { allow: ["a"], deny: ["b"] }, excludeTools: ["c"] },
      word: { command: "x", includeTools: "a" },
      late: { command: "x", timeout: "soon" },
    });
    expect(servers).toMatchObject([{ name: "both", allow: ["a"], deny: ["b", "c"] }]);
    expect(refused).toEqual([
      expect.stringMatching(/^server "word": tools /),
      'server "late": timeoutSeconds must be a number of seconds from 1 to 600',
    ]);
  });

  test("mcp.json skips servers that another client has not enabled", () => {
    expect(read({ one: { command: "x", enabled: false } })).toEqual({ servers: [], problems: [], refused: [] });
    expect(read({ one: { command: "x", enabled: true } }).servers).toHaveLength(1);
  });

  test("mcp.json can name its servers as VS Code does", () => {
    const file = { inputs: [], servers: { one: { type: "stdio", command: "x" } } };
    expect(readMcpFile("tools.json", {}, () => JSON.stringify(file)).servers).toMatchObject([{ name: "one" }]);
  });

  test("every server name becomes a unique prefix of its tools' names", () => {
    const given = [
      "tracker",
      "Tracker Server",
      "github.com/example/servers/src/files",
      "io.example/files",
      "@example/wiki-mcp/",
      "a__b",
      "a-name-of-far-more-than-24-letters",
      "日本",
      "files!",
    ];
    const { servers, refused } = read(Object.fromEntries(given.map((name) => [name, { command: "x" }])));
    expect(refused).toEqual([]);
    const names = servers.map(({ name }) => name);
    expect(names).toEqual([
      "tracker",
      "Tracker-Server",
      expect.stringMatching(/^files-[0-9a-f]{6}$/),
      expect.stringMatching(/^files-[0-9a-f]{6}$/),
      "wiki-mcp",
      "a-b",
      expect.stringMatching(/^a-name-of-far-mor-[0-9a-f]{6}$/),
      expect.stringMatching(/^server-[0-9a-f]{6}$/),
      expect.stringMatching(/^files-[0-9a-f]{6}$/),
    ]);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name.length).toBeLessThanOrEqual(24);
  });

  test("mcp.json reports all problems of its servers at once, without values, and the other servers work", () => {
    const { servers, problems, refused } = read({
      nothing: {},
      both: { command: "x", url: "https://a.example" },
      odd: { url: "ftp://secret.example", timeoutSeconds: 0, approve: "maybe", chanels: ["slack"] },
      unset: { command: "x", env: { A: "${NOT_THERE}" } },
      socket: { type: "ws", url: "https://a.example/ws" },
      fine: { command: "x" },
    });
    expect(servers.map(({ name }) => name)).toEqual(["fine"]);
    expect(problems).toEqual([]);
    expect(refused).toEqual([
      'server "nothing": needs either "command" or "url"',
      'server "both": needs either "command" or "url"',
      'server "odd": approve must be one of "always", "acting", "never"',
      'server "odd": timeoutSeconds must be at least 1',
      'server "odd": url must be an address that starts with https:// or http://',
      'server "odd": chanels is not known; did you mean channels?',
      'server "unset": the variable NOT_THERE is not set',
      'server "socket": type must be "http" or "sse" if there is a url',
    ]);
    expect(refused.join("\n")).not.toContain("secret");
  });

  test.each([
    ["{", "is not valid JSON"],
    ["[]", 'must be an object whose "mcpServers" or "servers" is an object'],
    ['{"mcpServers":[]}', 'must be an object whose "mcpServers" or "servers" is an object'],
  ])("the service refuses an invalid mcp.json: %s", (json, problem) => {
    expect(readMcpFile("tools.json", {}, () => json)).toEqual({ servers: [], problems: [problem], refused: [] });
  });

  test("mcp.json is optional at its default path, and required at a configured one", () => {
    const missing = () => {
      throw Object.assign(new Error("There is no such file."), { code: "ENOENT" });
    };
    expect(readMcpFile("./mcp.json", {}, missing).problems).toEqual([]);
    expect(readMcpFile("tools.json", {}, missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
