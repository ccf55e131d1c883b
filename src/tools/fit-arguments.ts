/**
 * Corrects unambiguous mistakes in arguments: drops null for an optional property, and parses a string if the tool's
 * JSON schema requires an object or array. Pure.
 */
export function fitArguments(given: unknown, schema: Readonly<Record<string, unknown>>): unknown {
  const { type, properties, required, items } = toOnlyChoice(schema);
  const value = type === "object" || type === "array" ? decode(given, type) : given;
  if (Array.isArray(value)) return isRecord(items) ? value.map((item) => fitArguments(item, items)) : value;
  if (!isRecord(value) || !isRecord(properties)) return value;
  const needed = Array.isArray(required) ? required : [];
  const fitted = Object.entries(value).flatMap(([name, inner]): Array<[string, unknown]> => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isRecord(property)) return [[name, inner]];
    if (inner === null && !needed.includes(name) && !acceptsNull(property)) return [];
    return [[name, fitArguments(inner, property)]];
  });
  return Object.fromEntries(fitted);
}

/** Returns a schema's only variant besides null. */
function toOnlyChoice(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const choices = Array.isArray(schema["anyOf"]) ? schema["anyOf"].filter(isRecord) : [];
  const [only, another] = choices.filter(({ type }) => type !== "null");
  return only !== undefined && another === undefined ? only : schema;
}

function acceptsNull({ type, anyOf, enum: choices }: Record<string, unknown>): boolean {
  if (Array.isArray(choices)) return choices.includes(null);
  if (Array.isArray(anyOf)) return anyOf.some((choice) => isRecord(choice) && acceptsNull(choice));
  return type === undefined || type === "null" || (Array.isArray(type) && type.includes("null"));
}

/** Parses a string as JSON if the result has the required type. */
function decode(given: unknown, type: "object" | "array"): unknown {
  if (typeof given !== "string") return given;
  try {
    const value: unknown = JSON.parse(given);
    return (type === "array" ? Array.isArray(value) : isRecord(value)) ? value : given;
  } catch {
    return given;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
