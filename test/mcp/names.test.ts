import { expect, test } from "vitest";
import { toToolNames } from "../../src/mcp/names.ts";

test("the name of an MCP tool starts with its server's name", () => {
  expect([...toToolNames("tracker", ["create", "list-all"])]).toEqual([
    ["create", "tracker__create"],
    ["list-all", "tracker__list-all"],
  ]);
});

test("the adapter to MCP replaces names that gateways reject, or that would collide, with stable ones", () => {
  const tools = ["a.b", "a/b", "a_b", "日本", "x".repeat(200)];
  const names = toToolNames("s", tools);
  expect(new Set(names.values()).size).toBe(tools.length);
  for (const name of names.values()) expect(name).toMatch(/^s__[a-zA-Z0-9_-]{1,61}$/);
  expect(toToolNames("s", tools.toReversed()).get("a.b")).toBe(names.get("a.b"));
});
