import { isRecord, parseJson } from "./json.ts";
import { findProblems, optionalFields } from "./request.ts";

/** Fields that an operator adds to requests. A setting of the answer replaces a field of the same name. */
export type ExtraFields = Readonly<Record<string, unknown>>;

/** Fields for every chat request, and fields for single models. The fields for a model override the others. */
export interface ExtraBody {
  all: ExtraFields;
  models: ReadonlyMap<string, ExtraFields>;
}

/** Operators cannot set these fields, because Palaver could then not read the answer. */
const OWN_FIELDS = ["model", "messages", "stream", "tools", "tool_choice", "user"];

export function fieldsFor({ all, models }: ExtraBody, model: string): ExtraFields {
  return { ...all, ...models.get(model) };
}

/** Reads fields from JSON. If they are invalid, returns a text that completes "VARIABLE …" and contains no values. */
export function readExtraFields(json: string): ExtraFields | string {
  return toFields(parseJson(json)) ?? 'must be a JSON object, like {"reasoning_effort":"low"}';
}

/** Reads fields by model id from JSON. If they are invalid, returns a text that completes "VARIABLE …". */
export function readModelFields(json: string): ReadonlyMap<string, ExtraFields> | string {
  const value = parseJson(json);
  if (!isRecord(value))
    return 'must be a JSON object with fields for each model, like {"some-model":{"reasoning_effort":"low"}}';
  const models = new Map<string, ExtraFields>();
  for (const [model, given] of Object.entries(value)) {
    const fields = toFields(given) ?? "must have a JSON object of fields";
    if (typeof fields === "string") return `${fields} (for the model ${JSON.stringify(model)})`;
    models.set(model, fields);
  }
  return models;
}

function toFields(value: unknown): ExtraFields | string | undefined {
  if (!isRecord(value)) return undefined;
  const own = OWN_FIELDS.filter((name) => Object.hasOwn(value, name));
  if (own.length > 0) return `must not set ${own.join(", ")}: Palaver sets that itself`;
  const problems = findProblems(optionalFields, value);
  return problems.length === 0 ? value : `isn't valid for the gateway's API: ${problems.join("; ")}`;
}
