import { z } from "zod";
import { truncate } from "../text/truncate.ts";

export type JsonSchema = Record<string, unknown>;

const MAX_DEPTH = 8;
/** Schemas of one tool, nested ones included. */
const MAX_NODES = 300;
const MAX_PROPERTIES = 100;
const MAX_CHOICES = 100;
const MAX_TEXT_CHARS = 500;
/** Names, descriptions and choices of one tool together. */
const MAX_CHARS = 12_000;

/** Keywords whose value is no schema; everything else is left out: gateways refuse much, and a pattern can be a trap. */
const PLAIN = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"] as const;
const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** Counts down what is left. */
interface Budget {
  nodes: number;
  chars: number;
  /** The whole schema, in which references are looked up. */
  root: JsonSchema;
}

/** Bounds a schema, resolves its references and keeps common keywords. The server checks the rest. Pure. */
export function cleanSchema(given: unknown): JsonSchema {
  const root = isObject(given) ? given : {};
  const clean = cleanNode(root, 0, { nodes: MAX_NODES, chars: MAX_CHARS, root });
  const { properties = {}, required = [] } = clean;
  return { type: "object", properties, required };
}

function cleanNode(given: unknown, depth: number, budget: Budget): JsonSchema {
  const node = followReference(given, budget.root);
  if (node === undefined || depth > MAX_DEPTH || --budget.nodes < 0 || budget.chars < 0) return {};
  const clean: JsonSchema = { ...readType(node["type"]) };
  if (typeof node["description"] === "string") clean["description"] = cutText(node["description"], budget);
  for (const keyword of PLAIN) if (Number.isFinite(node[keyword])) clean[keyword] = node[keyword];
  const choices = readChoices(node, budget);
  if (choices !== undefined) clean["enum"] = choices;
  if (isObject(node["properties"])) Object.assign(clean, cleanProperties(node, depth, budget));
  if (node["items"] !== undefined) clean["items"] = cleanNode(node["items"], depth + 1, budget);
  else if (clean["type"] === "array") clean["items"] = {};
  const among = [node["anyOf"], node["oneOf"]].find((list) => Array.isArray(list));
  if (among !== undefined && among.length <= MAX_CHOICES) {
    clean["anyOf"] = among.map((choice) => cleanNode(choice, depth + 1, budget));
  }
  return clean;
}

/** Only what is written in the schema itself is looked up; a circle ends with the depth. */
function followReference(given: unknown, root: JsonSchema): JsonSchema | undefined {
  if (!isObject(given)) return undefined;
  const reference = typeof given["$ref"] === "string" ? given["$ref"] : "";
  const [, place, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? [];
  if (place === undefined || name === undefined) return given;
  const definitions = root[place];
  const found = isObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  return isObject(found) ? found : {};
}

function cleanProperties(node: JsonSchema, depth: number, budget: Budget): JsonSchema {
  const entries = Object.entries(node["properties"] as JsonSchema)
    .filter(([name]) => name !== "__proto__" && name.length <= 100)
    .slice(0, MAX_PROPERTIES)
    .filter(([name]) => (budget.chars -= name.length) >= 0);
  const properties = Object.fromEntries(
    entries.map(([name, property]) => [name, cleanNode(property, depth + 1, budget)]),
  );
  const names = Array.isArray(node["required"]) ? node["required"] : [];
  const required = names.filter((name) => typeof name === "string" && Object.hasOwn(properties, name));
  return { type: "object", properties, required: [...new Set(required)] };
}

/** One type: gateways differ over lists of them. One that may also be null is the other one. */
function readType(type: unknown): { type?: string } {
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === "string" && TYPES.has(one));
  const others = types.filter((one) => one !== "null");
  const [only] = others.length > 0 ? others : types;
  return others.length > 1 || only === undefined || types.length > others.length ? {} : { type: String(only) };
}

function readChoices(node: JsonSchema, budget: Budget): unknown[] | undefined {
  const choices = node["const"] === undefined ? node["enum"] : [node["const"]];
  if (!Array.isArray(choices) || choices.length === 0 || choices.length > MAX_CHOICES) return undefined;
  const isPlain = choices.every((choice) => ["string", "number", "boolean"].includes(typeof choice) || choice === null);
  const chars = choices.reduce((sum: number, choice) => sum + String(choice).length, 0);
  // Cut choices would be others.
  if (!isPlain || chars > budget.chars) return undefined;
  budget.chars -= chars;
  return choices;
}

/** Checks arguments by a schema that was cleaned. Fields that it does not name pass. */
export function toCheck(schema: JsonSchema): z.ZodType {
  try {
    return z.fromJSONSchema(schema);
  } catch {
    return z.looseObject({});
  }
}

function cutText(text: string, budget: Budget): string {
  const maxChars = Math.max(1, Math.min(MAX_TEXT_CHARS, budget.chars));
  const shown = truncate(text, maxChars);
  budget.chars -= shown.length;
  return shown.toWellFormed();
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
