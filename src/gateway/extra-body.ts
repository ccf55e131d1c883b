import { isRecord, parseJson } from "./json.ts";
import { findProblems, optionalFields } from "./request.ts";

/** Fields that somebody asked for beyond what Palaver sends: what an answer was asked for with counts more. */
export type ExtraFields = Readonly<Record<string, unknown>>;

/** The fields of every chat request, and those of one model's, which count more. */
export interface ExtraBody {
  all: ExtraFields;
  models: ReadonlyMap<string, ExtraFields>;
}

/** Fields that may not be set: each would break what Palaver makes of the answer. */
const OWN_FIELDS = ["model", "messages", "stream", "tools", "tool_choice", "user"];

export function fieldsFor({ all, models }: ExtraBody, model: string): ExtraFields {
  return { ...all, ...models.get(model) };
}

/** Reads fields from JSON. A text completes "VARIABLE …" and says what is wrong, without a value. */
export function readExtraFields(json: string): ExtraFields | string {
  return toFields(parseJson(json)) ?? 'must be a JSON object, like {"reasoning_effort":"low"}';
}

/** Reads the fields of models from JSON, an object of objects by the models' ids; else as `readExtraFields`. */
export function readModelFields(json: string): ReadonlyMap<string, ExtraFields> | string {
  const value = parseJson(json);
  if (!isRecord(value))
    return 'must be JSON that has fields for models, like {"some-model":{"reasoning_effort":"low"}}';
  const models = new Map<string, ExtraFields>();
  for (const [model, given] of Object.entries(value)) {
    const fields = toFields(given) ?? "must have a JSON object of fields";
    if (typeof fields === "string") return `${fields} (for the model ${JSON.stringify(model)})`;
    models.set(model, fields);
  }
  return models;
}

/** Undefined unless it is an object. */
function toFields(value: unknown): ExtraFields | string | undefined {
  if (!isRecord(value)) return undefined;
  const own = OWN_FIELDS.filter((name) => Object.hasOwn(value, name));
  if (own.length > 0) return `must not set ${own.join(", ")}: that is Palaver's own`;
  const problems = findProblems(optionalFields, value);
  return problems.length === 0 ? value : `breaks the gateway's interface: ${problems.join("; ")}`;
}
