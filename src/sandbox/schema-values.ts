import { readEvidence, usualValue } from "./schema-evidence.ts";

type Schema = Readonly<Record<string, unknown>>;

export interface ValueSource {
  /** The user's words, searched for values that fit. */
  words: string;
  /** Used for a free text that the words do not give. */
  text: string;
}

/** Deeper schemas are left empty: recursive ones would never end. */
const MAX_DEPTH = 8;
/** A few words of a schema can ask for any number of values; those beyond this many are empty. */
const MAX_VALUES = 1000;
/** So many characters count as one more value. */
const CHARS_PER_VALUE = 1000;

/** A value that a JSON schema allows: required fields, and others that the words name. Ignores patterns. */
export function fillSchema(schema: Schema, source: ValueSource): unknown {
  return fill(schema, "", source, { root: schema, depth: 0, room: { values: MAX_VALUES } });
}

interface Place {
  root: Schema;
  depth: number;
  /** Values that may still be made, for the whole answer together. */
  room: { values: number };
}

function fill(given: Schema, name: string, source: ValueSource, place: Place): unknown {
  const schema = resolve(given, place);
  place.room.values -= 1;
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return pickOption(schema["enum"], source.words);
  switch (typeOf(schema)) {
    case "object":
      return fillObject(schema, source, place);
    case "array":
      return fillArray(schema, name, source, place);
    case "integer":
    case "number":
      return fillNumber(schema, name, source.words);
    case "boolean":
      return "default" in schema
        ? schema["default"]
        : !new RegExp(`\\bno(?:t|n-| )\\s*${RegExp.escape(name)}\\b`, "i").test(source.words);
    case "null":
      return null;
    default:
      return fillString(schema, name, source, place);
  }
}

function fillObject(schema: Schema, source: ValueSource, place: Place): Record<string, unknown> {
  const properties = toRecord(schema["properties"]);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  if (isFull(place)) return {};
  const inner = { ...place, depth: place.depth + 1 };
  const entries = Object.entries(properties).flatMap(([key, property]): [string, unknown][] => {
    const wanted = required.has(key) || isEvident(resolve(toRecord(property), inner), key, source.words);
    return wanted ? [[key, fill(toRecord(property), key, source, inner)]] : [];
  });
  return Object.fromEntries(entries);
}

function isEvident(schema: Schema, name: string, words: string): boolean {
  if (Array.isArray(schema["enum"])) return schema["enum"].some((option) => isSpoken(option, words));
  return readEvidence(name, typeOf(schema), words, schema["format"]) !== undefined;
}

function fillArray(schema: Schema, name: string, source: ValueSource, place: Place): unknown[] {
  const length = Math.max(typeof schema["minItems"] === "number" ? schema["minItems"] : 1, 0);
  const max = typeof schema["maxItems"] === "number" ? schema["maxItems"] : length;
  if (isFull(place)) return [];
  const item = () => fill(toRecord(schema["items"]), name, source, { ...place, depth: place.depth + 1 });
  return Array.from({ length: Math.min(length, max, 100) }, item);
}

function fillNumber(schema: Schema, name: string, words: string): number {
  // Not the least one: some schema libraries write -9007199254740991 where they mean any.
  const spoken = Number(readEvidence(name, "number", words, undefined) ?? schema["default"] ?? 1);
  const step = typeOf(schema) === "integer" ? 1 : 0.5;
  const above = toNumber(schema["exclusiveMinimum"], Number.NEGATIVE_INFINITY) + step;
  const below = toNumber(schema["exclusiveMaximum"], Number.POSITIVE_INFINITY) - step;
  const low = Math.max(toNumber(schema["minimum"], above), above);
  const high = Math.min(toNumber(schema["maximum"], below), below);
  const value = Math.min(high, Math.max(low, spoken));
  return typeOf(schema) === "integer" ? Math.round(value) : value;
}

function toNumber(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function fillString(schema: Schema, name: string, { words, text }: ValueSource, { room }: Place): string {
  if (room.values < 0) return "";
  const evidence = readEvidence(name, "string", words, schema["format"]);
  const value =
    evidence ??
    (typeof schema["default"] === "string" ? schema["default"] : (usualValue(name, schema["format"]) ?? text));
  const min = typeof schema["minLength"] === "number" ? schema["minLength"] : 0;
  const max = typeof schema["maxLength"] === "number" ? schema["maxLength"] : Number.POSITIVE_INFINITY;
  const filled = value.padEnd(Math.min(min, CHARS_PER_VALUE), ".").slice(0, max);
  room.values -= filled.length / CHARS_PER_VALUE;
  return filled;
}

function isFull({ depth, room }: Place): boolean {
  return depth >= MAX_DEPTH || room.values < 0;
}

function pickOption(options: unknown[], words: string): unknown {
  return options.find((option) => isSpoken(option, words)) ?? options[0] ?? null;
}

function isSpoken(option: unknown, words: string): boolean {
  return typeof option === "string" && new RegExp(`(?<![\\w-])${RegExp.escape(option)}(?![\\w-])`, "i").test(words);
}

/** Follows local references and takes the first of several forms. */
function resolve(schema: Schema, place: Place): Schema {
  const { root, depth } = place;
  const reference = schema["$ref"];
  if (typeof reference === "string" && depth < MAX_DEPTH) {
    const target = reference.replace(/^#\/?/, "").split("/").filter(Boolean);
    const found = toRecord(target.reduce<unknown>((value, key) => toRecord(value)[key], root));
    return resolve(found, { ...place, depth: depth + 1 });
  }
  const forms = schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"];
  if (!Array.isArray(forms) || depth >= MAX_DEPTH) return schema;
  const form = forms.map(toRecord).find((candidate) => candidate["type"] !== "null");
  return form === undefined
    ? schema
    : resolve(
        { ...schema, anyOf: undefined, oneOf: undefined, allOf: undefined, ...form },
        { ...place, depth: depth + 1 },
      );
}

function typeOf(schema: Schema): string {
  const type = schema["type"];
  const [first] = Array.isArray(type) ? type.filter((name) => name !== "null") : [type];
  if (typeof first === "string") return first;
  return "properties" in schema ? "object" : "items" in schema ? "array" : "string";
}

function toRecord(value: unknown): Schema {
  return typeof value === "object" && value !== null ? (value as Schema) : {};
}
