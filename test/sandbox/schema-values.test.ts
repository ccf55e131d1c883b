import { describe, expect, test } from "vitest";
import { fillSchema } from "../../src/sandbox/schema-values.ts";

const fill = (schema: Record<string, unknown>, words = "") => fillSchema(schema, { words, text: "the answer" });
const object = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});

describe("fillSchema", () => {
  test.each<[Record<string, unknown>, string, unknown]>([
    [{ type: "string" }, "", "the answer"],
    [{ type: "string", maxLength: 3 }, "", "the"],
    [{ type: "string", minLength: 12 }, "", "the answer.."],
    [{ type: "string", format: "date" }, "", "2026-01-01"],
    [{ type: "string", format: "email" }, "write to bob@example.org", "bob@example.org"],
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
  ])("fills %j from %j", (schema, words, expected) => expect(fill(schema, words)).toEqual(expected));

  test("fills what is required, and of the rest what the words plainly say", () => {
    const schema = object(
      {
        query: { type: "string" },
        city: { type: "string" },
        units: { enum: ["metric", "imperial"] },
        note: { type: "string" },
      },
      ["query"],
    );
    expect(fill(schema, 'look for "rain" in Osaka, metric')).toEqual({ query: "rain", city: "Osaka", units: "metric" });
    expect(fill(schema, 'query = "snow", note: "late"')).toEqual({ query: "snow", note: "late" });
  });

  test("follows local references and ends recursive ones", () => {
    const node = object({ name: { type: "string" }, next: { $ref: "#/$defs/node" } });
    const filled = fill({ ...node, $defs: { node } });
    expect(filled).toMatchObject({ name: "the answer", next: { name: "the answer", next: { name: "the answer" } } });
    expect(JSON.stringify(filled).length).toBeLessThan(1000);
    expect(fill({ $ref: "#" })).toEqual("the answer");
  });

  test("stays small, whatever a schema asks for", () => {
    const deep = Array.from({ length: 7 }).reduce<object>((items) => ({ type: "array", minItems: 100, items }), {});
    const wide = object(Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`p${at}`, { $ref: "#" }])));
    const long = { type: "array", minItems: 100, items: { type: "string", minLength: 1e12 } };
    const texts = Array.from({ length: 3000 }, (_, at) => [`t${at}`, { type: "string", minLength: 1000 }]);
    const broad = object(Object.fromEntries(texts));
    for (const schema of [deep, wide, long, broad])
      expect(JSON.stringify(fill({ ...schema })).length).toBeLessThan(1e6);
  });

  test("a field called like a part of a regular expression does no harm", () => {
    expect(fill(object({ "a(b[": { type: "boolean" }, "*": { type: "string" } }), "x")).toEqual({
      "a(b[": true,
      "*": "the answer",
    });
  });
});
