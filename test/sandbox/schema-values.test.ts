import { describe, expect, test } from "vitest";
import { fillSchema, findSchema } from "../../src/sandbox/schema-values.ts";
import { ask, contentOf, start } from "./sandbox.ts";

const fill = (schema: Record<string, unknown>, words = "") => fillSchema(schema, { words, text: "the answer" });
const object = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});

describe("values that fill a schema", () => {
  test.each<[Record<string, unknown>, string, unknown]>([
    [{ type: "string" }, "", "the answer"],
    [{ type: "string", maxLength: 3 }, "", "the"],
    [{ type: "string", minLength: 12 }, "", "the answer.."],
    [{ type: "integer", minimum: 5 }, "", 5],
    [{ type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }, "", 1],
    [{ type: "integer", exclusiveMinimum: 5 }, "", 6],
    [{ type: "number", exclusiveMaximum: 1 }, "", 0.5],
    [{ type: "integer", maximum: 9 }, "take 40", 9],
    [{ type: "integer" }, "about 2.6", 3],
    [{ type: "number" }, "about 2.6", 2.6],
    [{ type: "boolean" }, "", true],
    [{ type: "boolean", default: false }, "", false],
    [{ type: "null" }, "", null],
    [{ type: ["null", "integer"] }, "7", 7],
    [{ enum: ["small", "large"] }, "a LARGE one", "large"],
    [{ enum: [3, 4] }, "", 3],
    [{ const: "x" }, "", "x"],
    [{ anyOf: [{ type: "null" }, { type: "integer" }] }, "8", 8],
    [{ type: "array", items: { type: "integer" }, minItems: 2 }, "", [1, 1]],
    [{ type: "array", items: { type: "string" }, maxItems: 0 }, "", []],
    [{ enum: [] }, "", null],
  ])("fillSchema fills %j from %j", (schema, words, expected) => expect(fill(schema, words)).toEqual(expected));

  test("fillSchema fills required fields, and others only if the words plainly contain them", () => {
    const schema = object(
      {
        query: { type: "string" },
        zone: { type: "string" },
        units: { enum: ["metric", "imperial"] },
        note: { type: "string" },
      },
      ["query"],
    );
    expect(fill(schema, 'look for "rain" in New York, metric')).toEqual({
      query: "rain",
      zone: "America/New_York",
      units: "metric",
    });
    const fetched = object({ url: { type: "string" }, all: { type: "boolean" }, raw: { type: "boolean" } }, ["url"]);
    expect(fill(fetched, "fetch https://example.com/a all: it, raw: no")).toEqual({
      url: "https://example.com/a",
      all: true,
      raw: false,
    });
    expect(fill(schema, 'query = "snow", note: "late"')).toEqual({ query: "snow", note: "late" });
  });

  test("fillSchema follows local references and ends recursive ones", () => {
    const node = object({ name: { type: "string" }, next: { $ref: "#/$defs/node" } });
    const filled = fill({ ...node, $defs: { node } });
    expect(filled).toMatchObject({ name: "the answer", next: { name: "the answer", next: { name: "the answer" } } });
    expect(JSON.stringify(filled).length).toBeLessThan(1000);
    expect(fill({ $ref: "#" })).toEqual("the answer");
  });

  test("fillSchema stays small, whatever a schema requires", () => {
    const deep = Array.from({ length: 7 }).reduce<object>((items) => ({ type: "array", minItems: 100, items }), {});
    const wide = object(Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`p${at}`, { $ref: "#" }])));
    const long = { type: "array", minItems: 100, items: { type: "string", minLength: 1e12 } };
    const texts = Array.from({ length: 3000 }, (_, at) => [`t${at}`, { type: "string", minLength: 1000 }]);
    const broad = object(Object.fromEntries(texts));
    for (const schema of [deep, wide, long, broad])
      expect(JSON.stringify(fill({ ...schema })).length).toBeLessThan(1e6);
  });

  test("fillSchema treats a field named like a regular expression like any other", () => {
    expect(fill(object({ "a(b[": { type: "boolean" }, "*": { type: "string" } }), "x")).toEqual({
      "a(b[": true,
      "*": "the answer",
    });
  });
});

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["age"],
};
const system = (content: string) => [{ role: "system" as const, content }];

describe("a schema in the words of a request", () => {
  test("findSchema finds a schema on one line, over many lines and after words, as the common clients write it", () => {
    const oneLine = `JSON schema:\n${JSON.stringify(SCHEMA)}\nYou MUST answer with a JSON object that matches it.`;
    const manyLines = `Answer in this form:\n\n${JSON.stringify(SCHEMA, null, 2)}\n\nand nothing else.`;
    const fenced = `\`\`\`json\n${JSON.stringify(SCHEMA, null, 4)}\n\`\`\``;
    const behind = `Return valid JSON.\n  description: x\n  json schema: ${JSON.stringify(SCHEMA)}\n  `;
    for (const words of [oneLine, manyLines, fenced, behind]) expect(findSchema(system(words))).toEqual(SCHEMA);
  });

  test("findSchema ignores JSON that is not a schema, and broken JSON", () => {
    for (const words of ['{"properties":7}', '{"a":1}', "{ nothing", ""])
      expect(findSchema(system(words))).toBeUndefined();
  });

  test("the sandbox obeys a schema in the words under response_format json_object", async () => {
    const sandbox = await start();
    const content = `My name is Bob, age: 33. Schema:\n${JSON.stringify(SCHEMA)}`;
    const said = await contentOf(ask(sandbox, content, { response_format: { type: "json_object" } }));
    expect(JSON.parse(said)).toEqual({ name: "Bob", age: 33 });
    const format = { type: "json_object", schema: { properties: { age: { type: "integer" } }, required: ["age"] } };
    expect(JSON.parse(await contentOf(ask(sandbox, content, { response_format: format })))).toEqual({ age: 33 });
  });
});
