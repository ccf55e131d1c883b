import { z } from "zod";
import { policySchema } from "./policy-file.ts";

/** The policy file as a JSON Schema, for editors: `docs/policy.schema.json` is this. */
export function toPolicyJsonSchema(): object {
  return {
    ...z.toJSONSchema(policySchema, { io: "input", unrepresentable: "any" }),
    title: "Policy of Palaver",
  };
}
