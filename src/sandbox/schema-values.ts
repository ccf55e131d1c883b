/** Finds values that a JSON schema allows: for the arguments of tool calls, and for answers with a schema. */
import type { SandboxMessage } from "./chat-request.ts";
import { textOf } from "./tokens.ts";

type Schema = Readonly<Record<string, unknown>>;

export interface ValueSource {
  /** The user's words. The sandbox looks for values in them. */
  words: string;
  /** The value for a text field that the words do not mention. */
  text: string;
}

/** Deeper values stay empty, because a recursive schema would never end. */
const MAX_DEPTH = 8;
/** An answer has at most this many values, because a small schema can request any number. Further values are empty. */
const MAX_VALUES = 1000;
/** A text counts as one value per this many characters. */
const CHARS_PER_VALUE = 1000;

/** Fills required fields, and optional fields that the words name. Ignores patterns. */
export function fillSchema(schema: Schema, source: ValueSource): unknown {
  return fill(schema, "", { root: schema, source, depth: 0, room: { values: MAX_VALUES } });
}

interface Place {
  root: Schema;
  source: ValueSource;
  depth: number;
  /** How many more values the whole answer can have. */
  room: { values: number };
}

function fill(given: Schema, name: string, place: Place): unknown {
  const { source, depth, room } = place;
  const schema = resolve(given, place);
  room.values -= 1;
  if ("const" in schema) return schema["const"];
  const found = findValue(schema, name, source.words);
  const wanted = found ?? schema["default"];
  if (Array.isArray(schema["enum"])) return wanted ?? schema["enum"][0] ?? null;
  const isFull = depth >= MAX_DEPTH || room.values < 0;
  switch (typeOf(schema)) {
    case "object":
      return isFull ? {} : fillObject(schema, { ...place, depth: depth + 1 });
    case "array": {
      const length = Math.min(toNumber(schema["minItems"], 1), toNumber(schema["maxItems"], 100), 100);
      const item = () => fill(toSchema(schema["items"]), name, { ...place, depth: depth + 1 });
      return isFull ? [] : Array.from({ length }, item);
    }
    case "integer":
    case "number":
      return fillNumber(schema, Number(wanted ?? 1));
    case "boolean":
      return found === undefined ? (schema["default"] ?? true) : found !== "no" && found !== "false";
    case "null":
      return null;
    default:
      return fillString(schema, wanted ?? (ZONE_FIELD.test(name) ? "UTC" : source.text), place);
  }
}

function fillObject(schema: Schema, place: Place): unknown {
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  const entries = Object.entries(toSchema(schema["properties"])).flatMap(([key, value]): [string, unknown][] => {
    const property = toSchema(value);
    const isNamed = findValue(resolve(property, place), key, place.source.words) !== undefined;
    return required.has(key) || isNamed ? [[key, fill(property, key, place)]] : [];
  });
  return Object.fromEntries(entries);
}

/** Some schema libraries give every number the minimum -9007199254740991, so a minimum can be a bad value. */
function fillNumber(schema: Schema, wanted: number): number {
  const isInteger = typeOf(schema) === "integer";
  const step = isInteger ? 1 : 0.5;
  const above = toNumber(schema["exclusiveMinimum"], Number.NEGATIVE_INFINITY) + step;
  const below = toNumber(schema["exclusiveMaximum"], Number.POSITIVE_INFINITY) - step;
  const low = Math.max(toNumber(schema["minimum"], above), above);
  const high = Math.min(toNumber(schema["maximum"], below), below);
  const value = Math.min(high, Math.max(low, wanted));
  return isInteger ? Math.round(value) : value;
}

function fillString(schema: Schema, wanted: unknown, { room }: Place): string {
  if (room.values < 0) return "";
  const min = Math.min(toNumber(schema["minLength"], 0), CHARS_PER_VALUE);
  const filled = String(wanted).padEnd(min, ".").slice(0, toNumber(schema["maxLength"], Number.POSITIVE_INFINITY));
  room.values -= filled.length / CHARS_PER_VALUE;
  return filled;
}

const ZONE_FIELD = /zone|^tz$/i;

/** Matches a number that is not part of a ratio, a time or a date. */
const NUMBER = /(?<![\d:.-])-?\d+(?:\.\d+)?(?![\d.]*[:-]\d)/;
const LINK = /https?:\/\/[^\s<>"')\]]+/;

/** Finds a field's value in the words: an option, `name: value`, a number, a time zone, a link or a subject. */
function findValue(schema: Schema, name: string, words: string): unknown {
  if (Array.isArray(schema["enum"])) return schema["enum"].find((option) => isNamed(String(option), words));
  const told = findTold(name, words);
  switch (typeOf(schema)) {
    case "integer":
    case "number":
      return Number.isFinite(Number(told)) ? told : NUMBER.exec(words)?.[0];
    case "string":
      if (told !== undefined) return told;
      if (ZONE_FIELD.test(name)) return findZone(words);
      if (/^(?:url|uri|link)$/i.test(name)) return LINK.exec(words)?.[0];
      return /query|search|question|topic|prompt/i.test(name) ? findSubject(words) : undefined;
    default:
      return told;
  }
}

function findTold(name: string, words: string): string | undefined {
  if (name === "") return undefined;
  const spelled = name.split(/[_-]/).map(RegExp.escape).join("[ _-]");
  const pattern = `(?<!\\w)${spelled}\\s*(?:=|:|\\bis\\b)\\s*(?:"([^"]*)"|([^\\s,;"]+))`;
  const [, quoted, plain] = new RegExp(pattern, "i").exec(words) ?? [];
  return quoted ?? (plain?.replace(/[.?!]+$/, "") || undefined);
}

/** Finds the time zone that the words name, by its own name or by its city. */
function findZone(words: string): string | undefined {
  const zones = Intl.supportedValuesOf("timeZone");
  return zones.find((zone) => isNamed(zone, words) || isNamed(zone.split("/").at(-1) ?? zone, words));
}

function isNamed(name: string, words: string): boolean {
  return new RegExp(`(?<![\\w-])${RegExp.escape(name).replaceAll("_", "[ _]")}(?![\\w-])`, "i").test(words);
}

/** Finds the subject of a search or an image: the quoted words, or those after "for", "about" or "of", or all words. */
function findSubject(words: string): string | undefined {
  const quoted = /"([^"\n]+)"/.exec(words)?.[1];
  const named = /\b(?:for|about|of)\s+([^.?!\n]+)/i.exec(words)?.[1];
  return (quoted ?? named ?? words).trim() || undefined;
}

/** Follows local references. Chooses the first of several alternatives. */
function resolve(schema: Schema, { root, depth }: Pick<Place, "root" | "depth">): Schema {
  if (depth >= MAX_DEPTH) return schema;
  const inner = { root, depth: depth + 1 };
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const path = reference.replace(/^#\/?/, "").split("/").filter(Boolean);
    return resolve(toSchema(path.reduce<unknown>((value, key) => toSchema(value)[key], root)), inner);
  }
  const forms = schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"];
  const form = Array.isArray(forms) ? forms.map(toSchema).find(({ type }) => type !== "null") : undefined;
  return form === undefined
    ? schema
    : resolve({ ...schema, anyOf: undefined, oneOf: undefined, allOf: undefined, ...form }, inner);
}

function typeOf(schema: Schema): string {
  const type = schema["type"];
  const [first] = Array.isArray(type) ? type.filter((name) => name !== "null") : [type];
  if (typeof first === "string") return first;
  return "properties" in schema ? "object" : "items" in schema ? "array" : "string";
}

function toNumber(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function toSchema(value: unknown): Schema {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** Finds the newest schema in a message: clients that request `json_object` write it there. */
export function findSchema(messages: readonly SandboxMessage[]): Schema | undefined {
  const told = messages.filter(({ role }) => role === "system" || role === "user").map(textOf);
  return told
    .toReversed()
    .map((text) => parseObject(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1)))
    .find((value) => typeof value?.["properties"] === "object" && value["properties"] !== null);
}

/** Undefined for text that is not a JSON object. */
export function parseObject(text: string): Schema | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? toSchema(value) : undefined;
  } catch {
    return undefined;
  }
}
