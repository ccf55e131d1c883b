import { z } from "zod";
import { isName } from "../log/fields.ts";
import { cleanSchema, type JsonSchema as Fields, isObject } from "./schema.ts";

/**
 * Receives the name of each field that is replaced or dropped, for example `search: annotations.title`. The tool's name
 * is included only if it is a plain word.
 */
export type OnFault = (field: string) => void;

type Repair = (given: Fields, fault: OnFault) => Fields | Fields[] | undefined;

/** Schemas are truncated at this depth, because the SDK reads them recursively. */
const MAX_SCHEMA_DEPTH = 64;
/** Lists are truncated at this length, because the SDK would check each item. */
const MAX_ITEMS = 10_000;
/** JSON-RPC's general error code. */
const INTERNAL_ERROR = -32_603;
const UNREADABLE = { type: "text", text: "[An unreadable part]" };

/** The field that replaces `nextCursor`, because the SDK would follow cursors without a limit. */
const PAGE = "palaver/page";
const pageSchema = z.object({ chars: z.number(), nextCursor: z.string().optional() });

/** A page's original size, and the cursor of the next page. */
export type Page = z.output<typeof pageSchema>;

export function readPage(list: Fields): Page {
  return pageSchema.parse(list[PAGE]);
}

/**
 * Makes a server's result valid, because the SDK rejects a whole result for one wrong field. Keeps the fields that
 * Palaver uses. Pure.
 */
export function repairResult(result: unknown, fault: OnFault): unknown {
  if (!isObject(result)) return {};
  const repaired = Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null));
  if (read(repaired, "_meta", isObject, fault) === undefined) delete repaired["_meta"];
  const { structuredContent, isError } = repaired;
  if (isError !== undefined) repaired["isError"] = isError === true || isError === "true";
  if (structuredContent !== undefined && !isObject(structuredContent)) {
    repaired["structuredContent"] = { result: structuredContent };
  }
  for (const [list, repair] of Object.entries(PARTS)) {
    if (list in result) repaired[list] = repairItems(list, toParts(result[list]), repair, fault);
  }
  const list = Object.keys(LISTS).find((name) => name in result);
  if (list === undefined) return repaired;
  const nextCursor = read(repaired, "nextCursor", isText, fault);
  delete repaired["nextCursor"];
  return { ...repaired, [PAGE]: withoutAbsent({ chars: measure(result) ?? measure(repaired), nextCursor }) };
}

/** Makes an error valid. The SDK ignores an invalid error, so the call would wait forever. Pure. */
export function repairError(given: unknown): { code: number; message: string; data?: unknown } {
  const error = isObject(given) ? given : { message: given };
  const code = Number.isInteger(error["code"]) ? Number(error["code"]) : INTERNAL_ERROR;
  const message = readWords({ text: error["message"] }, () => {}) ?? "an error without a message";
  return { code, message, ...(error["data"] !== undefined && { data: error["data"] }) };
}

/** Returns the value's size; undefined if the value is nested too deeply. */
function measure(value: unknown): number | undefined {
  try {
    return JSON.stringify(value).length;
  } catch {
    return undefined;
  }
}

const LISTS: Record<string, Repair> = { tools: repairTool, prompts: repairPrompt, resources: repairResource };

const PARTS: Record<string, Repair> = {
  ...LISTS,
  contents: repairContents,
  content: repairBlock,
  messages: repairMessage,
};

function toParts(given: unknown): unknown[] {
  const parts: unknown[] = Array.isArray(given) ? given : [given ?? []].flat();
  return parts.map((part) => (typeof part === "string" ? { type: "text", text: part } : part));
}

function repairItems(list: string, items: readonly unknown[], repair: Repair, fault: OnFault): Fields[] {
  if (items.length > MAX_ITEMS) fault(`${list} after ${MAX_ITEMS}`);
  return items.slice(0, MAX_ITEMS).flatMap<Fields>((item, index) => {
    if (!isObject(item)) {
      fault(`${list} ${index + 1}`);
      return [];
    }
    const name = typeof item["name"] === "string" && isName(item["name"]) ? item["name"] : `${list} ${index + 1}`;
    return repair(item, (field) => fault(`${name}: ${field}`)) ?? [];
  });
}

function repairTool(tool: Fields, fault: OnFault): Fields | undefined {
  const name = need(tool, "name", fault);
  if (name === undefined) return undefined;
  const annotations = read(tool, "annotations", isObject, fault) ?? {};
  const inAnnotations: OnFault = (field) => fault(`annotations.${field}`);
  return withoutAbsent({
    name,
    title: read(tool, "title", isString, fault),
    description: read(tool, "description", isString, fault),
    annotations: withoutAbsent({
      title: read(annotations, "title", isString, inAnnotations),
      readOnlyHint: read(annotations, "readOnlyHint", isFlag, inAnnotations),
      idempotentHint: read(annotations, "idempotentHint", isFlag, inAnnotations),
    }),
    inputSchema: repairSchema(tool["inputSchema"], fault),
  });
}

/** Repairs a schema only if it is invalid, because the SDK reads more of it than the model gets. */
function repairSchema(given: unknown, fault: OnFault): Fields {
  const { properties = {}, required = [] } = isObject(given) ? given : {};
  const isSound =
    isObject(given) &&
    given["type"] === "object" &&
    isObject(properties) &&
    Array.isArray(required) &&
    required.every(isString) &&
    !isDeep(given);
  if (isSound) return given;
  fault("inputSchema");
  return cleanSchema(given);
}

/** Does not recurse, so that no depth exhausts the stack. */
function isDeep(given: object): boolean {
  let level: object[] = [given];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_SCHEMA_DEPTH) return true;
    level = level.flatMap((node) => Object.values(node).filter((value) => typeof value === "object" && value !== null));
  }
  return false;
}

function repairPrompt(prompt: Fields, fault: OnFault): Fields | undefined {
  const name = need(prompt, "name", fault);
  if (name === undefined) return undefined;
  const wanted = read(prompt, "arguments", isList, fault);
  return withoutAbsent({
    name,
    description: read(prompt, "description", isString, fault),
    arguments: wanted && repairItems("arguments", wanted, repairArgument, fault),
  });
}

function repairArgument(wanted: Fields, fault: OnFault): Fields | undefined {
  const name = need(wanted, "name", fault);
  return name === undefined ? undefined : withoutAbsent({ name, required: read(wanted, "required", isFlag, fault) });
}

function repairResource(resource: Fields, fault: OnFault): Fields | undefined {
  const uri = need(resource, "uri", fault);
  if (uri === undefined) return undefined;
  return withoutAbsent({
    uri,
    name: read(resource, "name", isString, fault) ?? uri,
    description: read(resource, "description", isString, fault),
    mimeType: read(resource, "mimeType", isString, fault),
  });
}

function repairContents(contents: Fields, fault: OnFault): Fields {
  const uri = read(contents, "uri", isString, fault) ?? "";
  const mimeType = read(contents, "mimeType", isString, fault);
  const blob = contents["text"] === undefined ? readBase64(contents, "blob") : undefined;
  if (blob !== undefined) return withoutAbsent({ uri, mimeType, blob });
  return withoutAbsent({ uri, mimeType, text: readWords(contents, fault) ?? UNREADABLE.text });
}

/** Some servers put several blocks into one message. */
function repairMessage({ role, content }: Fields, fault: OnFault): Fields[] {
  const blocks = repairItems("content", toParts(content), repairBlock, fault);
  return blocks.map((block) => ({ role: role === "assistant" ? "assistant" : "user", content: block }));
}

function repairBlock(block: Fields, fault: OnFault): Fields {
  const { type } = block;
  if (type === "text") return { type, text: readWords(block, fault) ?? UNREADABLE.text };
  if (type === "image" || type === "audio") {
    const data = readBase64(block, "data");
    const mimeType = read(block, "mimeType", isString, fault) ?? "no type";
    if (data !== undefined) return { type, data, mimeType };
  }
  if (type === "resource" && isObject(block["resource"])) {
    return { type, resource: repairContents(block["resource"], (field) => fault(`resource.${field}`)) };
  }
  if (type === "resource_link") {
    const link = repairResource(block, fault);
    if (link !== undefined) return { type, ...link };
  }
  fault(`type ${typeof type === "string" && isName(type) ? type : "unknown"}`);
  return UNREADABLE;
}

/** Returns a block's text. Other values become JSON. */
function readWords(from: Fields, fault: OnFault): string | undefined {
  const { text } = from;
  if (typeof text === "string") return text;
  fault("text");
  return text === undefined || text === null || isDeep([text]) ? undefined : JSON.stringify(text);
}

/** Also accepts a whole `data:` URL, which some servers send. */
function readBase64(from: Fields, field: string): string | undefined {
  const value = from[field];
  if (typeof value !== "string") return undefined;
  const base64 = value.replace(/^data:[^,]{0,200},/, "");
  return /[^A-Za-z0-9+/=\s]/.test(base64) ? undefined : Buffer.from(base64, "base64").toString("base64");
}

function need(from: Fields, field: string, fault: OnFault): string | undefined {
  const value = from[field];
  if (isText(value)) return value;
  fault(field);
  return undefined;
}

function read<T>(from: Fields, field: string, isValid: (value: unknown) => value is T, fault: OnFault): T | undefined {
  const value = from[field];
  if (value === undefined) return undefined;
  if (isValid(value)) return value;
  fault(field);
  return undefined;
}

function withoutAbsent(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

function isFlag(value: unknown): value is boolean {
  return typeof value === "boolean";
}
