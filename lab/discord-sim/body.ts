import type { IncomingMessage } from "node:http";
import { refuse } from "./refusals.ts";

const MAX_REQUEST_BYTES = 25 * 2 ** 20;

/** A file of a multipart body. `index` is the `n` of its field `files[n]`. */
export interface UploadedFile {
  index: string;
  name: string;
  bytes: Uint8Array;
}

export interface ReadBody {
  /** The parsed JSON; undefined without a body. */
  json: unknown;
  files: UploadedFile[];
}

/**
 * Reads the whole request before any error response, because the caller could otherwise miss that response. Throws 413
 * above 25 MiB.
 */
export async function readBody(request: IncomingMessage): Promise<ReadBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= MAX_REQUEST_BYTES) chunks.push(chunk);
  }
  if (size > MAX_REQUEST_BYTES) throw refuse("too-large");
  const raw = Buffer.concat(chunks);
  if (raw.length === 0) return { json: undefined, files: [] };
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("multipart/form-data")) return await readMultipart(raw, type);
  if (!type.startsWith("application/json")) throw refuse("invalid-json");
  return { json: parseJson(raw.toString()), files: [] };
}

async function readMultipart(raw: Uint8Array<ArrayBuffer>, type: string): Promise<ReadBody> {
  const form = await new Response(raw, { headers: { "content-type": type } }).formData().catch(() => {
    throw refuse("invalid-json");
  });
  const files: UploadedFile[] = [];
  let json: unknown = {};
  for (const [field, value] of form) {
    if (typeof value === "string") {
      if (field === "payload_json") json = parseJson(value);
    } else {
      const index = /^files\[(\d+)\]$/.exec(field)?.[1] ?? String(files.length);
      files.push({ index, name: value.name, bytes: new Uint8Array(await value.arrayBuffer()) });
    }
  }
  return { json, files };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refuse("invalid-json");
  }
}
