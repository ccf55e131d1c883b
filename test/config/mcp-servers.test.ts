import { describe, expect, test } from "vitest";
import { readMcpFile, secretsOfMcp } from "../../src/config/mcp-servers.ts";

const ENV = { TRACKER_TOKEN: "tracker-secret", WIKI_TOKEN: "wiki-secret" };

function read(mcpServers: unknown, env: Record<string, string> = ENV) {
  return readMcpFile("tools.json", env, () => JSON.stringify({ mcpServers }));
}

describe("the file of the tool servers", () => {
  test("is read in the form that other programs use, with variables of the environment in any text", () => {
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

  test("may have been written for another program, as far as that means the same here", () => {
    const { servers, refused } = read({
      events: { type: "sse", url: "https://a.example/sse" },
      stream: { type: "streamable-http", url: "https://a.example/mcp" },
      editor: { command: "x", env: { A: "${env:TRACKER_TOKEN}" }, description: "Tracks.", autoApprove: ["list"] },
      asked: { command: "x", env: { A: "${input:token}" } },
      patient: { command: "x", timeout: 60 },
    });
    expect(servers).toMatchObject([
      { transport: { type: "sse" } },
      { transport: { type: "http" } },
      { transport: { env: { A: "tracker-secret" } }, approve: "acting" },
    ]);
    expect(refused).toEqual([
      'server "asked": ${input:…} is for an editor to fill in; name a variable instead',
      'server "patient": timeout is not known; did you mean timeoutSeconds?',
    ]);
  });

  test("has all that is wrong with its servers told at once, and none of its values, and the others are there", () => {
    const { servers, problems, refused } = read({
      a__b: { command: "x" },
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
      expect.stringMatching(/^server "a__b": its name must be/),
      'server "nothing": needs either "command" or "url"',
      'server "both": needs either "command" or "url"',
      'server "odd": approve must be one of "always", "acting", "never"',
      'server "odd": timeoutSeconds must be at least 1',
      'server "odd": url must be an address that begins with https:// or http://',
      'server "odd": chanels is not known; did you mean channels?',
      'server "unset": the variable NOT_THERE is not set',
      'server "socket": type must be "http" or "sse" where there is an url: no other kind is spoken',
    ]);
    expect(refused.join("\n")).not.toContain("secret");
  });

  test.each([
    ["{", "is not valid JSON"],
    ["[]", 'must be an object with "mcpServers", an object'],
    ['{"servers":{}}', 'must be an object with "mcpServers", an object'],
  ])("is refused where it is none: %s", (json, problem) => {
    expect(readMcpFile("tools.json", {}, () => json)).toEqual({ servers: [], problems: [problem], refused: [] });
  });

  test("need not be there at its usual place, and must where another one is named", () => {
    const missing = () => {
      throw Object.assign(new Error("There is no such file."), { code: "ENOENT" });
    };
    expect(readMcpFile("./mcp.json", {}, missing).problems).toEqual([]);
    expect(readMcpFile("tools.json", {}, missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
