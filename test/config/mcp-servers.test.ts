import { describe, expect, test } from "vitest";
import { readMcpFile, secretsOfMcp } from "../../src/config/mcp-servers.ts";

const ENV = { TRACKER_TOKEN: "tracker-secret", WIKI_TOKEN: "wiki-secret" };

function read(mcpServers: unknown, env: Record<string, string> = ENV) {
  return readMcpFile("tools.json", env, () => JSON.stringify({ mcpServers }));
}

describe("the file of the tool servers", () => {
  test("is read in the form that other programs use, with variables of the environment in any text", () => {
    const { servers, problems } = read({
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
      old: { command: "old", disabled: true },
    });
    expect(problems).toEqual([]);
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

  test("has all that is wrong with it told at once, and none of its values", () => {
    const { servers, problems } = read({
      a__b: { command: "x" },
      nothing: {},
      both: { command: "x", url: "https://a.example" },
      odd: { url: "ftp://secret.example", timeoutSeconds: 0, approve: "maybe", chanels: ["slack"] },
      unset: { command: "x", env: { A: "${NOT_THERE}" } },
      sse: { type: "sse", url: "https://a.example/sse" },
      fine: { command: "x" },
    });
    expect(servers.map(({ name }) => name)).toEqual(["fine"]);
    expect(problems).toEqual([
      expect.stringMatching(/^server "a__b": its name must be/),
      'server "nothing": needs either "command" or "url"',
      'server "both": needs either "command" or "url"',
      'server "odd": approve must be one of "always", "acting", "never"',
      'server "odd": timeoutSeconds must be at least 1',
      'server "odd": url must be an address that begins with https:// or http://',
      'server "odd": chanels is not known; did you mean channels?',
      'server "unset": the variable NOT_THERE is not set',
      'server "sse": type must be "http" where there is an url: no other kind is spoken',
    ]);
    expect(problems.join("\n")).not.toContain("secret");
  });

  test.each([
    ["{", "is not valid JSON"],
    ["[]", 'must be an object with "mcpServers", an object'],
    ['{"servers":{}}', 'must be an object with "mcpServers", an object'],
  ])("is refused where it is none: %s", (json, problem) => {
    expect(readMcpFile("tools.json", {}, () => json)).toEqual({ servers: [], problems: [problem] });
  });

  test("need not be there at its usual place, and must where another one is named", () => {
    const missing = () => {
      throw Object.assign(new Error("There is no such file."), { code: "ENOENT" });
    };
    expect(readMcpFile("./mcp.json", {}, missing).problems).toEqual([]);
    expect(readMcpFile("tools.json", {}, missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
