import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { toPolicyJsonSchema } from "../../src/config/policy/json-schema.ts";

const PATH = new URL("../../docs/policy.schema.json", import.meta.url);

test("docs/policy.schema.json is the schema by which the service checks a policy file", () => {
  expect(JSON.parse(readFileSync(PATH, "utf8"))).toEqual(toPolicyJsonSchema());
});
