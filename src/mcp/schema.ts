import { z } from "zod";
import { truncate } from "../text/truncate.ts";

export type JsonSchema = Record<string, unknown>;

const MAX_DEPTH = 8;
/** Maximum number of schemas in one tool, including nested ones. */
const MAX_NODES = 300;
const MAX_PROPERTIES = 100;
const MAX_CHOICES = 100;
const MAX_TEXT_CHARS = 500;
/** Maximum number of characters of one tool's names, descriptions and enum values together. */
const MAX_CHARS = 12_000;

/** The kept keywords without schemas. Gateways reject many others, and a `pattern` can be slow on purpose. */
const PLAIN = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"] as const;
const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** Maximum number of schemas, from references and `allOf`, that are combined into one. */
const MAX_LAYERS = 16;
/** Maximum depth of arguments. */
const MAX_ARGUMENT_DEPTH = 100;

interface Budget {
  nodes: number;
  chars: number;
  /** The whole schema, in which references are looked up. */
  root: JsonSchema;
}

/**
 * Limits a schema's size, resolves its references and keeps only common keywords. The server still checks the dropped
 * keywords. Pure.
 */
export function cleanSchema(given: unknown): JsonSchema {
  const root = isObject(given) ? given : {};
  const clean = cleanNode(withoutUnion(root), 0, { nodes: MAX_NODES, chars: MAX_CHARS, root });
  const { properties = {}, required = [] } = clean;
  return { type: "object", properties, required };
}

/** Arguments must be one object, so a union of objects becomes one object with all of their properties. */
function withoutUnion(root: JsonSchema): JsonSchema {
  const layers = toLayers(root, root);
  const choices = (readUnion(layers) ?? []).map((choice) => toLayers(choice, root));
  if (choices.length === 0) return root;
  const found = new Map<string, unknown[]>();
  for (const [name, property] of [...readProperties(layers), ...choices.flatMap(readProperties)]) {
    const same = found.get(name) ?? [];
    same.push(property);
    found.set(name, same);
  }
  const isAlwaysRequired = (name: string) => choices.every((choice) => readRequired(choice).includes(name));
  const properties = [...found].map(([name, all]) => [name, all.length === 1 ? all[0] : { anyOf: all }]);
  const required = [...readRequired(layers), ...[...found.keys()].filter(isAlwaysRequired)];
  return { type: "object", properties: Object.fromEntries(properties), required };
}

function cleanNode(given: unknown, depth: number, budget: Budget): JsonSchema {
  if (!isObject(given) || depth > MAX_DEPTH || --budget.nodes < 0 || budget.chars < 0) return {};
  const layers = toLayers(given, budget.root);
  const first = (keyword: string) => layers.find((layer) => (layer[keyword] ?? null) !== null)?.[keyword];
  const clean: JsonSchema = { ...readType(first("type")) };
  const description = first("description");
  if (typeof description === "string") clean["description"] = cutText(description, budget);
  for (const keyword of PLAIN) {
    const value = first(keyword);
    if (Number.isFinite(value)) clean[keyword] = value;
  }
  const choices = readChoices(
    layers.find((layer) => layer["const"] !== undefined || Array.isArray(layer["enum"])),
    budget,
  );
  if (choices !== undefined) clean["enum"] = choices;
  if (isObject(first("properties"))) Object.assign(clean, cleanProperties(layers, depth, budget));
  const items = first("items");
  if (items !== undefined) clean["items"] = cleanNode(items, depth + 1, budget);
  else if (clean["type"] === "array") clean["items"] = {};
  const among = readUnion(layers);
  if (among !== undefined) clean["anyOf"] = among.map((choice) => cleanNode(choice, depth + 1, budget));
  return clean;
}

/** Returns a schema, the schemas that it references and its `allOf` schemas. `MAX_LAYERS` ends circular references. */
function toLayers(given: unknown, root: JsonSchema): JsonSchema[] {
  const layers: JsonSchema[] = [];
  const open: unknown[] = [given];
  while (open.length > 0 && layers.length < MAX_LAYERS) {
    const layer = open.shift();
    if (!isObject(layer)) continue;
    layers.push(layer);
    if (typeof layer["$ref"] === "string") open.push(lookUp(layer["$ref"], root));
    if (Array.isArray(layer["allOf"])) open.push(...layer["allOf"].slice(0, MAX_LAYERS));
  }
  return layers;
}

/** Resolves a JSON pointer such as `#/$defs/label`; undefined if it points to another document. */
function lookUp(reference: string, root: JsonSchema): unknown {
  if (!/^#(?:\/|$)/.test(reference) || reference.length > MAX_TEXT_CHARS) return undefined;
  return reference
    .split("/")
    .slice(1)
    .map((part) => decode(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((node, part) => {
      const isThere = typeof node === "object" && node !== null && Object.hasOwn(node, part);
      return isThere ? Reflect.get(node, part) : undefined;
    }, root);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function readUnion(layers: readonly JsonSchema[]): unknown[] | undefined {
  const lists = layers.flatMap((layer) => [layer["anyOf"], layer["oneOf"]]);
  const list = lists.find((one) => Array.isArray(one));
  return list !== undefined && list.length <= MAX_CHOICES ? list : undefined;
}

function readProperties(layers: readonly JsonSchema[]): [string, unknown][] {
  const names = new Map<string, unknown>();
  for (const { properties } of layers) {
    if (!isObject(properties)) continue;
    const listed = entriesOf.get(properties) ?? listEntries(properties);
    entriesOf.set(properties, listed);
    for (const [name, property] of listed) if (!names.has(name)) names.set(name, property);
  }
  return [...names].slice(0, MAX_PROPERTIES);
}

/** Cached, because many references can point to the same large object. */
const entriesOf = new WeakMap<JsonSchema, [string, unknown][]>();

/** Lists all properties except `__proto__`, which Zod also drops from arguments. */
function listEntries(properties: JsonSchema): [string, unknown][] {
  return Object.entries(properties)
    .filter(([name]) => name !== "__proto__" && name.length <= 100)
    .slice(0, MAX_PROPERTIES);
}

function readRequired(layers: readonly JsonSchema[]): string[] {
  const lists = layers.map((layer) => layer["required"]).filter((list) => Array.isArray(list));
  return lists.flatMap((list) => list.slice(0, MAX_PROPERTIES).filter((name) => typeof name === "string"));
}

/** Makes a required property with a default optional for the model, because the default fills it in. */
function cleanProperties(layers: readonly JsonSchema[], depth: number, budget: Budget): JsonSchema {
  const entries = readProperties(layers).filter(([name]) => (budget.chars -= name.length) >= 0);
  const required = new Set(readRequired(layers));
  const cleaned = entries.map(([name, property]): [string, JsonSchema] => {
    const clean = cleanNode(property, depth + 1, budget);
    const given = required.has(name) ? readDefault(toLayers(property, budget.root)) : undefined;
    return [name, given === undefined ? clean : { ...clean, default: given }];
  });
  const needed = cleaned.flatMap(([name, clean]) => (required.has(name) && clean["default"] === undefined ? name : []));
  return { type: "object", properties: Object.fromEntries(cleaned), required: needed };
}

function readDefault(layers: readonly JsonSchema[]): unknown {
  const given = layers.find((layer) => layer["default"] !== undefined)?.["default"];
  const values = isObject(given) ? Object.values(given) : [given].flat();
  const isPlain = values.length <= MAX_CHOICES && values.every((value) => typeof value !== "object" || value === null);
  return isPlain && JSON.stringify(given ?? null).length <= MAX_TEXT_CHARS ? given : undefined;
}

/** Keeps one type, because gateways treat lists of types differently. Drops null from a nullable type. */
function readType(type: unknown): { type?: string } {
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === "string" && TYPES.has(one));
  const others = types.filter((one) => one !== "null");
  const [only] = others.length > 0 ? others : types;
  return others.length > 1 || only === undefined || types.length > others.length ? {} : { type: String(only) };
}

function readChoices(node: JsonSchema = {}, budget: Budget): unknown[] | undefined {
  const choices = node["const"] === undefined ? node["enum"] : [node["const"]];
  if (!Array.isArray(choices) || choices.length === 0 || choices.length > MAX_CHOICES) return undefined;
  const isPlain = choices.every((choice) => ["string", "number", "boolean"].includes(typeof choice) || choice === null);
  const chars = choices.reduce((sum: number, choice) => sum + String(choice).length, 0);
  // An incomplete list of enum values would be wrong, so drop the whole list.
  if (!isPlain || chars > budget.chars) return undefined;
  budget.chars -= chars;
  return choices;
}

/** Checks arguments against a cleaned schema and fills in defaults. Allows unknown fields. */
export function toCheck(schema: JsonSchema): z.ZodType {
  return z.preprocess((given, context) => {
    const bare = withoutPrototype(given, MAX_ARGUMENT_DEPTH);
    if (bare === TOO_DEEP) context.addIssue("they are nested too deeply");
    return bare;
  }, toZod(schema));
}

function toZod(schema: JsonSchema): z.ZodType {
  try {
    return z.fromJSONSchema(schema);
  } catch {
    return z.looseObject({});
  }
}

const TOO_DEEP = Symbol("too deep");

/** Copies a value into objects without prototypes, so that a missing `constructor` is not inherited. */
function withoutPrototype(given: unknown, depth: number): unknown {
  if (typeof given !== "object" || given === null) return given;
  if (depth === 0) return TOO_DEEP;
  const copies = Object.entries(given).map(([name, value]) => [name, withoutPrototype(value, depth - 1)] as const);
  if (copies.some(([, value]) => value === TOO_DEEP)) return TOO_DEEP;
  if (Array.isArray(given)) return copies.map(([, value]) => value);
  return Object.assign(Object.create(null), Object.fromEntries(copies));
}

function cutText(text: string, budget: Budget): string {
  const maxChars = Math.max(1, Math.min(MAX_TEXT_CHARS, budget.chars));
  const shown = truncate(text, maxChars);
  budget.chars -= shown.length;
  return shown.toWellFormed();
}

export function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
