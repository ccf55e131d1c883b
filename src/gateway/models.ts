import { GatewayError } from "./errors.ts";
import { hasError, isRecord, parseJson, toStreamError } from "./failures.ts";
import type { SafeText } from "./safe-text.ts";

/**
 * Model ids from the answer of the model list, each once, in its order. The interface leaves the shape open:
 * `{data: […]}`, `{models: […]}` and a bare list are understood, of ids or of objects with `id`, `name` or `model`.
 */
export function parseModelIds(json: string, safe: SafeText): string[] {
  const value = parseJson(json);
  if (hasError(value)) throw toStreamError(value, safe);
  const list: unknown = isRecord(value) ? (value.data ?? value.models) : value;
  if (!Array.isArray(list)) {
    throw new GatewayError(
      "malformed",
      "The gateway's model list is not a list: check that its base address is right.",
    );
  }
  const ids = list.map(readId).filter((id) => id !== "");
  return [...new Set(ids)];
}

function readId(entry: unknown): string {
  const id: unknown = isRecord(entry) ? (entry.id ?? entry.name ?? entry.model) : entry;
  // Some lists name a model by its resource path, which is not its id.
  return typeof id === "string" ? id.replace(/^models\//, "") : "";
}
