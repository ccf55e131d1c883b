import { isRecord } from "./json.ts";

/** Every gateway that supports tools understands these keywords. */
const KEPT = ["description", "enum", "required"] as const;
/** Below this depth, only the type is kept. */
const MAX_DEPTH = 8;

/**
 * Returns the nearest schema in which every value has one type and nothing is a reference, as Gemini and Vertex
 * require. It can accept more than the original, which is safe because a tool checks its own arguments.
 */
export function toPlainSchema(schema: unknown): Record<string, unknown> {
  const plain = simplify(schema, isRecord(schema) ? schema : {}, MAX_DEPTH);
  return { ...plain, type: "object", properties: isRecord(plain.properties) ? plain.properties : {} };
}

function simplify(given: unknown, root: Record<string, unknown>, depth: number): Record<string, unknown> {
  if (!isRecord(given) || depth === 0) return { type: "string" };
  const schema = chooseBranch(given, root, depth);
  const type = typeOf(schema);
  const plain: Record<string, unknown> = { type };
  for (const key of KEPT) if (schema[key] !== undefined && schema[key] !== null) plain[key] = schema[key];
  if (schema.const !== undefined) plain.enum = [schema.const];
  if (Array.isArray(plain.enum)) {
    const values = plain.enum.filter((value) => typeof value === "string");
    // These gateways accept only strings in `enum`.
    if (type === "string" && values.length > 0) plain.enum = values;
    else delete plain.enum;
  }
  if (type !== "object") delete plain.required;
  if (type === "array") plain.items = simplify(schema.items, root, depth - 1);
  if (type === "object" && isRecord(schema.properties)) {
    const properties = Object.entries(schema.properties).map(([name, value]) => [
      name,
      simplify(value, root, depth - 1),
    ]);
    plain.properties = Object.fromEntries(properties);
  }
  return plain;
}

/** Returns the first alternative that is not null, together with the keywords next to the alternatives. */
function chooseBranch(
  schema: Record<string, unknown>,
  root: Record<string, unknown>,
  depth: number,
): Record<string, unknown> {
  const target = typeof schema.$ref === "string" ? resolve(schema.$ref, root) : undefined;
  const branches = [schema.anyOf, schema.oneOf, schema.allOf].find((list) => Array.isArray(list)) as
    | unknown[]
    | undefined;
  const branch = target ?? branches?.find((one) => isRecord(one) && one.type !== "null");
  if (!isRecord(branch) || depth === 0) return schema;
  const { $ref: _ref, anyOf: _any, oneOf: _one, allOf: _all, ...own } = schema;
  return chooseBranch({ ...branch, ...own }, root, depth - 1);
}

function resolve(ref: string, root: Record<string, unknown>): unknown {
  const steps = ref.startsWith("#/") ? ref.slice(2).split("/") : [];
  const names = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce<unknown>(
    (value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    root,
  );
}

function typeOf({ type, properties, items, enum: values }: Record<string, unknown>): string {
  const named: unknown = Array.isArray(type) ? type.find((one) => one !== "null") : type;
  if (typeof named === "string") return named;
  if (isRecord(properties)) return "object";
  if (items !== undefined) return "array";
  const [first] = Array.isArray(values) ? (values as unknown[]) : [];
  return typeof first === "number" || typeof first === "boolean" ? typeof first : "string";
}
