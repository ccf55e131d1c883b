import { createHash } from "node:crypto";

/** The gateways' limit, see `functionName` in `request.ts`. */
const MAX_CHARS = 64;
const HASH_CHARS = 6;

/**
 * Returns unique names `{server}__{tool}` that gateways accept. The order of the tools does not change the names. Pure.
 */
export function toToolNames(server: string, tools: readonly string[]): Map<string, string> {
  const plain = tools.map((tool) => `${server}__${tool.replace(/[^a-zA-Z0-9_-]/g, "_")}`);
  const counts = new Map<string, number>();
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map(
    tools.map((tool, index) => {
      const name = plain[index] ?? "";
      const isFree = name.length <= MAX_CHARS && counts.get(name) === 1 && name === `${server}__${tool}`;
      return [tool, isFree ? name : withHash(name, tool)];
    }),
  );
}

function withHash(name: string, tool: string): string {
  const hash = createHash("sha256").update(tool).digest("hex").slice(0, HASH_CHARS);
  return `${name.slice(0, MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}
