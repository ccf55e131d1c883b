import { describe, expect, test } from "vitest";
import { findSpokenSchema } from "../../src/sandbox/spoken-schema.ts";
import { ask, contentOf, start } from "./sandbox.ts";

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["age"],
};
const system = (content: string) => [{ role: "system" as const, content }];

describe("findSpokenSchema", () => {
  test("finds a schema on one line, over many lines and behind words, as the common clients write it", () => {
    const oneLine = `JSON schema:\n${JSON.stringify(SCHEMA)}\nYou MUST answer with a JSON object that matches it.`;
    const manyLines = `Answer in this form:\n\n${JSON.stringify(SCHEMA, null, 2)}\n\nand nothing else.`;
    const fenced = `\`\`\`json\n${JSON.stringify(SCHEMA, null, 4)}\n\`\`\``;
    const behind = `Return valid JSON.\n  description: x\n  json schema: ${JSON.stringify(SCHEMA)}\n  `;
    for (const words of [oneLine, manyLines, fenced, behind]) expect(findSpokenSchema(system(words))).toEqual(SCHEMA);
  });

  test("passes over JSON that is no schema, and over broken JSON", () => {
    const words = `{"a":1}\n{"type":"object"\n${JSON.stringify(SCHEMA)}`;
    expect(findSpokenSchema(system(words))).toEqual(SCHEMA);
    expect(findSpokenSchema(system('{"properties":7}\n{ nothing'))).toBeUndefined();
    expect(findSpokenSchema(system(""))).toBeUndefined();
  });

  test("gives up on words that only look like one", () => {
    expect(findSpokenSchema(system("{\n}x}\n".repeat(100_000)))).toBeUndefined();
  });

  test("is obeyed under response_format json_object", async () => {
    const sandbox = await start();
    const content = `My name is Bob, age: 33. Schema:\n${JSON.stringify(SCHEMA)}`;
    const said = await contentOf(ask(sandbox, content, { response_format: { type: "json_object" } }));
    expect(JSON.parse(said)).toEqual({ name: "Bob", age: 33 });
    const format = { type: "json_object", schema: { properties: { age: { type: "integer" } }, required: ["age"] } };
    expect(JSON.parse(await contentOf(ask(sandbox, content, { response_format: format })))).toEqual({ age: 33 });
  });
});
