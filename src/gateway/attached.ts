import { isRecord } from "./json.ts";

/**
 * Fields beyond the interface that a gateway attached to an answer or a call, such as signatures of thoughts. Some
 * gateways refuse the turn's next request unless it contains these fields unchanged.
 */
export interface Attached {
  /** The route that attached the fields. Palaver sends them back only to this route. */
  from: string;
  fields: Readonly<Record<string, unknown>>;
}

/**
 * Maximum number of fields or items at one level. It limits the work, because each fragment copies all earlier ones.
 */
const MAX_ENTRIES = 256;
/** Deeper values are dropped, because the code that joins and stores them is recursive. */
const MAX_DEPTH = 16;
/** The limit for one message's fields, as JSON, because every further request of the turn contains them. */
const MAX_ATTACHED_CHARS = 1_048_576;

/** True if these fields are small enough to store and send back. Pure. */
export function isKeepable(attached: ReadonlyArray<Attached | undefined>): boolean {
  return JSON.stringify(attached).length <= MAX_ATTACHED_CHARS;
}

function isModest(value: unknown, depth = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return true;
  const entries: unknown[] = Object.values(value);
  return depth > 0 && entries.length <= MAX_ENTRIES && entries.every((entry) => isModest(entry, depth - 1));
}

function put(record: Record<string, unknown>, key: string, value: unknown): void {
  if (Object.hasOwn(record, key) || Object.keys(record).length < MAX_ENTRIES) record[key] = value;
}

/** Moves the fields that are not in `known` from a message or a call to `attached`. */
export function setApart(value: Record<string, unknown>, known: ReadonlySet<string>, from: string): void {
  let fields: Record<string, unknown> | undefined;
  for (const key in value) {
    if (known.has(key) || value[key] === null || value[key] === undefined || value[key] === "") continue;
    if (!isModest(value[key])) continue;
    fields ??= {};
    put(fields, key, value[key]);
  }
  // Delete a field of this name that the gateway sent.
  delete value.attached;
  if (fields !== undefined) value.attached = { from, fields };
}

/** Joins the fields of two fragments of one message. Pure. */
export function joinAttached(first: Attached | undefined, more: Attached | undefined): Attached | undefined {
  if (first === undefined || more === undefined) return more ?? first;
  const fields: Record<string, unknown> = { ...first.fields };
  for (const [key, value] of Object.entries(more.fields)) put(fields, key, joinField(fields[key], value));
  return { from: more.from, fields };
}

function joinField(first: unknown, more: unknown): unknown {
  if (typeof first === "string" && typeof more === "string") return first + more;
  if (Array.isArray(first) && Array.isArray(more)) return joinLists(first, more);
  if (!isRecord(first) || !isRecord(more)) return more;
  const joined = { ...first };
  for (const [key, value] of Object.entries(more)) {
    put(joined, key, isRecord(joined[key]) && isRecord(value) ? joinField(joined[key], value) : value);
  }
  return joined;
}

/** Joins two lists. An item continues the item with the same index or, if the items have no index, the last item. */
function joinLists(first: readonly unknown[], more: readonly unknown[]): unknown[] {
  const joined = [...first];
  for (const [position, item] of more.entries()) {
    const at = joined.findLastIndex((one, index) => goesOn(one, item, position === 0 && index === joined.length - 1));
    if (at === -1 && joined.length < MAX_ENTRIES) joined.push(item);
    if (at !== -1) joined[at] = joinItems(joined[at] as Record<string, unknown>, item as Record<string, unknown>);
  }
  return joined;
}

function goesOn(first: unknown, more: unknown, isNext: boolean): boolean {
  if (!isRecord(first) || !isRecord(more) || first.type !== more.type) return false;
  if (first.id && more.id && first.id !== more.id) return false;
  if (typeof first.index === "number" && typeof more.index === "number") return first.index === more.index;
  // An item is complete once it has a signature or encrypted data.
  return isNext && !first.signature && !first.data;
}

/** The fields whose texts arrive in fragments. */
const TEXTS: ReadonlySet<string> = new Set(["text", "summary", "thinking", "reasoning", "data", "content"]);

function joinItems(first: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  const joined = { ...first };
  for (const [key, value] of Object.entries(more)) {
    const before = joined[key];
    if (TEXTS.has(key) && typeof before === "string" && typeof value === "string") joined[key] = before + value;
    else if (value !== null && value !== undefined && value !== "") put(joined, key, value);
    else put(joined, key, before ?? value);
  }
  return joined;
}
