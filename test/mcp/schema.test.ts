import { describe, expect, test } from "vitest";
import { cleanSchema, toCheck } from "../../src/mcp/schema.ts";

describe("the schema of an MCP tool", () => {
  test("a schema keeps the common keywords and resolves references", () => {
    const given = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      additionalProperties: false,
      properties: {
        title: {
          type: ["string", "null"],
          minLength: 1,
          pattern: "^(a+)+$",
          format: "uri",
          description: "What it is.",
        },
        kind: { const: "bug" },
        labels: { type: "array", items: { $ref: "#/$defs/label" }, uniqueItems: true },
        when: { anyOf: [{ type: "string" }, { type: "integer", minimum: 0 }] },
        list: { type: "array" },
      },
      required: ["title", "title", "absent", 7],
      $defs: { label: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
    };
    expect(cleanSchema(given)).toEqual({
      type: "object",
      properties: {
        title: { minLength: 1, description: "What it is." },
        kind: { enum: ["bug"] },
        labels: {
          type: "array",
          items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        },
        when: { anyOf: [{ type: "string" }, { type: "integer", minimum: 0 }] },
        list: { type: "array", items: {} },
      },
      required: ["title"],
    });
  });

  test.each([[undefined], [7], [[]], [{ type: "string" }], [{ properties: 7, required: "x" }]])(
    "an invalid schema means no arguments: %j",
    (given) => {
      expect(cleanSchema(given)).toEqual({ type: "object", properties: {}, required: [] });
    },
  );

  test("a schema is bounded in depth and size, even if it is recursive", () => {
    const circle = {
      type: "object",
      properties: { a: { $ref: "#/$defs/node" }, b: { $ref: "#/$defs/node" } },
      $defs: {
        node: {
          type: "object",
          properties: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, { $ref: "#/$defs/node" }])),
        },
      },
    };
    let deep: object = { type: "string" };
    for (let level = 0; level < 10_000; level++) deep = { type: "object", properties: { next: deep } };
    const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, { enum: ["x".repeat(5_000)] }]));
    for (const given of [circle, deep, { type: "object", properties: wide }]) {
      expect(JSON.stringify(cleanSchema(given)).length).toBeLessThan(50_000);
    }
  });

  test("a schema cannot reach the prototype", () => {
    const given = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"a":{"$ref":"#/$defs/__proto__"}}}',
    );
    expect(cleanSchema(given)).toEqual({ type: "object", properties: { a: {} }, required: [] });
  });

  test("arguments are checked, and unknown fields pass", () => {
    const check = toCheck(
      cleanSchema({ type: "object", properties: { a: { type: "integer" }, b: { enum: ["x"] } }, required: ["a"] }),
    );
    expect(check.safeParse({ a: 1, c: "more" }).data).toEqual({ a: 1, c: "more" });
    expect(check.safeParse({ a: "1" }).success).toBe(false);
    expect(check.safeParse({ a: 1, b: "y" }).success).toBe(false);
    expect(check.safeParse({}).success).toBe(false);
  });

  test("references are followed if they are chained, nested, escaped or next to other keywords", () => {
    const given = {
      properties: {
        chained: { $ref: "#/$defs/alias", description: "Beside it." },
        nested: { $ref: "#/$defs/group/$defs/inner" },
        other: { $ref: "#/properties/list/items" },
        list: { type: "array", items: { type: "boolean" } },
        escaped: { $ref: "#/$defs/a~1b%20c" },
        part: { allOf: [{ $ref: "#/$defs/alias" }], description: "As Pydantic writes it." },
        circle: { $ref: "#/$defs/circle" },
        outside: { $ref: "https://schemas.example/label.json" },
      },
      $defs: {
        alias: { $ref: "#/$defs/text" },
        text: { type: "string", maxLength: 9, description: "Below it." },
        group: { $defs: { inner: { type: "integer" } } },
        "a/b c": { type: "number" },
        circle: { $ref: "#/$defs/circle" },
      },
    };
    expect(cleanSchema(given)["properties"]).toEqual({
      chained: { type: "string", maxLength: 9, description: "Beside it." },
      nested: { type: "integer" },
      other: { type: "boolean" },
      list: { type: "array", items: { type: "boolean" } },
      escaped: { type: "number" },
      part: { type: "string", maxLength: 9, description: "As Pydantic writes it." },
      circle: {},
      outside: {},
    });
  });

  test("a union at the top becomes one object with all properties", () => {
    const given = {
      anyOf: [
        { type: "object", properties: { kind: { const: "id" }, id: { type: "integer" } }, required: ["kind", "id"] },
        { $ref: "#/$defs/byName" },
      ],
      $defs: {
        byName: { properties: { kind: { const: "name" }, name: { type: "string" } }, required: ["kind", "name"] },
      },
    };
    const schema = cleanSchema(given);
    expect(schema).toEqual({
      type: "object",
      properties: {
        kind: { anyOf: [{ enum: ["id"] }, { enum: ["name"] }] },
        id: { type: "integer" },
        name: { type: "string" },
      },
      required: ["kind"],
    });
    const check = toCheck(schema);
    expect(check.safeParse({ kind: "name", name: "x" }).success).toBe(true);
    expect(check.safeParse({ kind: "other" }).success).toBe(false);
  });

  test("a null keyword counts as absent", () => {
    const given = {
      type: "object",
      properties: { a: { type: "string", description: null, enum: null, items: null, anyOf: null, default: null } },
      required: null,
    };
    expect(cleanSchema(given)).toEqual({ type: "object", properties: { a: { type: "string" } }, required: [] });
    expect(cleanSchema({ properties: null })).toEqual({ type: "object", properties: {}, required: [] });
  });

  test("a required argument with a default is optional for the model, and filled in", () => {
    const given = {
      properties: {
        page: { type: "integer", default: 1 },
        order: { $ref: "#/$defs/order" },
        filter: { type: "object", properties: { open: { type: "boolean", default: true } }, required: ["open"] },
        optional: { type: "integer", default: 7 },
      },
      required: ["page", "order", "filter"],
      $defs: { order: { enum: ["up", "down"], default: "up" } },
    };
    const schema = cleanSchema(given);
    expect(schema["required"]).toEqual(["filter"]);
    const check = toCheck(schema);
    expect(check.parse({ filter: {} })).toEqual({ page: 1, order: "up", filter: { open: true } });
    expect(check.parse({ page: 3, order: "down", filter: { open: false } })).toMatchObject({ page: 3, order: "down" });
    expect(check.safeParse({ page: "3", filter: {} }).success).toBe(false);
  });

  test.each(["constructor", "toString", "hasOwnProperty", "valueOf"])("a property can be called %s", (name) => {
    const check = toCheck(cleanSchema({ properties: { [name]: { type: "string" }, a: { type: "integer" } } }));
    expect(check.parse({ a: 1 })).toEqual({ a: 1 });
    expect(check.parse({ [name]: "x" })).toEqual({ [name]: "x" });
    expect(check.safeParse({ [name]: 7 }).success).toBe(false);
    const required = toCheck(cleanSchema({ properties: { [name]: { type: "string" } }, required: [name] }));
    expect(required.safeParse({}).success).toBe(false);
    expect(required.safeParse({ [name]: "x" }).success).toBe(true);
  });

  test("an argument __proto__ is dropped, and too deeply nested arguments are refused", () => {
    const check = toCheck(cleanSchema({ properties: { a: { type: "integer" } } }));
    const parsed = check.parse(JSON.parse('{"a":1,"__proto__":{"isAdmin":true},"b":{"__proto__":{"isAdmin":true}}}'));
    expect(JSON.stringify(parsed)).toBe('{"a":1,"b":{"__proto__":{"isAdmin":true}}}');
    expect(Reflect.get(Object(parsed), "isAdmin")).toBeUndefined();
    expect(check.safeParse(JSON.parse("[".repeat(20_000) + "]".repeat(20_000))).success).toBe(false);
  });

  test("a huge object is listed once, however many references lead to it", () => {
    const huge = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`k${index}`, {}]));
    let listings = 0;
    const counted = new Proxy(huge, { ownKeys: (target) => ((listings += 1), Reflect.ownKeys(target)) });
    const properties = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, { $ref: "#/$defs/huge" }]));
    cleanSchema({ properties, $defs: { huge: { properties: counted } } });
    expect(listings).toBe(1);
  });
});
