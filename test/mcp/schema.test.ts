import { describe, expect, test } from "vitest";
import { cleanSchema, toCheck } from "../../src/mcp/schema.ts";

describe("the schema of a tool from outside", () => {
  test("keeps what every gateway knows, and writes references out", () => {
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
    "is that of no arguments where it is none: %j",
    (given) => {
      expect(cleanSchema(given)).toEqual({ type: "object", properties: {}, required: [] });
    },
  );

  test("is bounded in depth and in size, also where it holds itself", () => {
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

  test("cannot reach for the prototype", () => {
    const given = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"a":{"$ref":"#/$defs/__proto__"}}}',
    );
    expect(cleanSchema(given)).toEqual({ type: "object", properties: { a: {} }, required: [] });
  });

  test("checks what the model gives, and lets pass what it does not name", () => {
    const check = toCheck(
      cleanSchema({ type: "object", properties: { a: { type: "integer" }, b: { enum: ["x"] } }, required: ["a"] }),
    );
    expect(check.safeParse({ a: 1, c: "more" }).data).toEqual({ a: 1, c: "more" });
    expect(check.safeParse({ a: "1" }).success).toBe(false);
    expect(check.safeParse({ a: 1, b: "y" }).success).toBe(false);
    expect(check.safeParse({}).success).toBe(false);
  });
});
