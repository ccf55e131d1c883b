import { describe, expect, test } from "vitest";
import { z } from "zod";
import { cleanSchema, toCheck } from "../../src/mcp/schema.ts";
import { fitArguments } from "../../src/tools/fit-arguments.ts";
import { defineTool, readCall, type Tool } from "../../src/tools/tool.ts";

const text = { type: "string" };
const schema = {
  type: "object",
  properties: {
    name: text,
    note: text,
    maybe: { anyOf: [text, { type: "null" }] },
    anything: {},
    where: { type: "object", properties: { city: text, street: text }, required: ["city"] },
    place: { anyOf: [{ type: "object", properties: { city: text } }, { type: "null" }] },
    list: { type: "array", items: { type: "object", properties: { id: { type: "integer" } } } },
  },
  required: ["name"],
};

describe("the arguments of a tool call", () => {
  test.each<[string, unknown, unknown]>([
    ["null for a property that is not required is left out", { name: "a", note: null }, { name: "a" }],
    ["null for a required property stays", { name: null }, { name: null }],
    ["null stays if the schema accepts it", { maybe: null, anything: null }, { maybe: null, anything: null }],
    ["a string becomes the object that it encodes", { where: '{"city":"Rome"}' }, { where: { city: "Rome" } }],
    ["also if the object may be null", { place: '{"city":"Rome"}' }, { place: { city: "Rome" } }],
    ["a string becomes the array that it encodes", { list: '[{"id":1}]' }, { list: [{ id: 1 }] }],
    ["nested values are repaired too", { list: ['{"id":1}', { id: null }] }, { list: [{ id: 1 }, {}] }],
    ["so is what a string encodes", { where: '{"city":"Rome","street":null}' }, { where: { city: "Rome" } }],
    ["a string stays if it encodes another type", { where: "[1]", list: "{}" }, { where: "[1]", list: "{}" }],
    ["a string stays if it is not JSON", { where: "Rome" }, { where: "Rome" }],
    ["a string stays where a string is required", { name: '{"a":1}' }, { name: '{"a":1}' }],
    ["unknown properties stay", { other: null, constructor: null }, { other: null, constructor: null }],
  ])("the bot repairs the arguments of a call: %s", (_, given, fitted) => {
    expect(fitArguments(given, schema)).toEqual(fitted);
  });

  const own = defineTool({
    name: "find",
    description: "Finds.",
    schema: z.object({ where: z.object({ city: z.string() }), limit: z.number().optional() }),
    timeoutMs: 1_000,
    run: async () => "found",
    describeCall: () => "finding",
  });
  const parameters = cleanSchema({
    type: "object",
    properties: { where: { $ref: "#/$defs/place" }, limit: { type: "integer" } },
    required: ["where"],
    $defs: { place: { type: "object", properties: { city: text }, required: ["city"] } },
  });
  const foreign: Tool = { ...own, parameters, schema: toCheck(parameters) };

  test.each([
    ["one of our own tools", own],
    ["a tool of an MCP server", foreign],
  ])("the bot repairs invalid arguments of %s if possible, and otherwise tells the model the problem", (_, tool) => {
    const call = (args: object) =>
      readCall({ id: "c", type: "function", function: { name: "find", arguments: JSON.stringify(args) } }, [tool]);
    expect(call({ where: '{"city":"Rome"}', limit: null })).toMatchObject({ args: { where: { city: "Rome" } } });
    expect(call({ where: '{"city":"Rome"}', limit: "many" })).toMatch(
      /^Not run: the arguments of find are invalid\..*limit/,
    );
    expect(call({ where: "Rome" })).toMatch(/where: /);
  });
});
