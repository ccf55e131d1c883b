import type { Context } from "hono";
import type { z } from "zod";
import { RequestError } from "../errors.ts";

/** Throws if the JSON body does not match the schema. The first problem is the sentence in the response. */
export async function readBody<S extends z.ZodType>(c: Context, schema: S): Promise<z.infer<S>> {
  const json: unknown = await c.req.json().catch(() => {
    throw new RequestError(400, "The request is not JSON.");
  });
  const { success, data, error } = schema.safeParse(json);
  if (success) return data;
  const [issue] = error.issues;
  const field = issue?.path.join(".") ?? "";
  throw new RequestError(
    400,
    issue?.code === "invalid_type" ? `The field ${field} is missing or wrong.` : (issue?.message ?? ""),
  );
}
