import type { IncomingMessage } from "node:http";
import { invalidArguments } from "./refusal.ts";
import { listOf } from "./shown-text.ts";
import type { Json } from "./world.ts";

/** The arguments of a call, from a form or from JSON. */
export interface Arguments {
  readonly raw: Json;
  /** The token in the body. A token in a header is read elsewhere. */
  readonly token: string | undefined;
  has(name: string): boolean;
  /** Undefined if the argument is missing or empty. */
  text(name: string): string | undefined;
  /** Refuses the call if the argument is missing. */
  needText(name: string): string;
  flag(name: string): boolean;
  count(name: string): number | undefined;
  object(name: string): Json | undefined;
  /** Empty if the argument is missing. */
  list(name: string): Json[];
}

function createArguments({ token, ...raw }: Json): Arguments {
  function text(name: string): string | undefined {
    const value = raw[name];
    if (value === undefined || value === null || value === "") return undefined;
    return typeof value === "string" ? value : JSON.stringify(value);
  }

  /** In a form, structured values are JSON strings. */
  function structured(name: string): unknown {
    const value = raw[name];
    if (typeof value !== "string" || value === "") return value;
    try {
      return JSON.parse(value);
    } catch {
      throw invalidArguments(`failed to parse [json-pointer:/${name}]`);
    }
  }

  return {
    raw,
    token: typeof token === "string" ? token : undefined,
    has: (name) => text(name) !== undefined,
    text,
    needText(name) {
      const value = text(name);
      if (value === undefined) throw invalidArguments(`missing required field: ${name}`);
      return value;
    },
    flag: (name) => ["true", "1"].includes(text(name) ?? ""),
    count: (name) => (text(name) === undefined ? undefined : Number(text(name))),
    object(name) {
      const value = structured(name);
      if (value === undefined || value === "") return undefined;
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw invalidArguments(`must be an object [json-pointer:/${name}]`);
      }
      return value as Json;
    },
    list(name) {
      const value = structured(name);
      if (value === undefined || value === "") return [];
      if (!Array.isArray(value)) throw invalidArguments(`must be an array [json-pointer:/${name}]`);
      return listOf(value);
    },
  };
}

export async function readArguments(request: IncomingMessage, body: Buffer, url: URL): Promise<Arguments> {
  const contentType = request.headers["content-type"] ?? "";
  const query = Object.fromEntries(url.searchParams);
  if (body.length === 0) return createArguments(query);
  if (contentType.startsWith("application/json")) {
    return createArguments({ ...query, ...(JSON.parse(body.toString()) as Json) });
  }
  if (contentType.startsWith("multipart/form-data")) {
    const form = await new Response(body, { headers: { "content-type": contentType } }).formData();
    return createArguments({ ...query, ...Object.fromEntries(form) });
  }
  return createArguments({ ...query, ...Object.fromEntries(new URLSearchParams(body.toString())) });
}
