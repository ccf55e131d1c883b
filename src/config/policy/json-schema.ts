import { z } from "zod";
import { policySchema } from "./policy-file.ts";

/** Returns the JSON Schema of the policy file. Editors get it from `docs/policy.schema.json`. */
export function toPolicyJsonSchema(): object {
  return {
    ...z.toJSONSchema(policySchema, { io: "input", unrepresentable: "any" }),
    title: "Palaver policy",
  };
}
