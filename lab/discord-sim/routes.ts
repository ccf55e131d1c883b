import type { ReadBody } from "./body.ts";
import type { Payload } from "./world.ts";

export interface Call {
  /** Values in the path, by their names in the route's pattern. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  body: ReadBody;
}

export interface Reply {
  status: number;
  /** Absent for status 204. */
  body?: Payload | readonly Payload[];
}

export interface Route {
  /** Method and pattern: `"PATCH /channels/:channel/messages/:message"`. */
  route: string;
  /** `token`: the path contains an interaction's token, and no header contains the bot's token. */
  access: "bot" | "token";
  /** False for calls that rate limits ignore, such as acknowledgements. */
  isCounted?: boolean;
  handle(call: Call): Reply | Promise<Reply>;
}

export type RouteTable = readonly Route[];

export interface Match {
  route: Route;
  params: Record<string, string>;
  /** The channel, guild or webhook whose counters the call uses. */
  major: string;
}

export function findRoute(table: RouteTable, method: string, path: string): Match | undefined {
  const parts = path.split("/");
  for (const route of table) {
    const [ownMethod, pattern = ""] = route.route.split(" ");
    if (ownMethod !== method) continue;
    const params = matchPattern(pattern.split("/"), parts);
    if (params !== undefined) return { route, params, major: majorOf(params) };
  }
  return undefined;
}

function matchPattern(pattern: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const part = decodeURIComponent(parts[index] ?? "");
    if (expected.startsWith(":")) params[expected.slice(1)] = part;
    else if (expected !== part) return undefined;
  }
  return params;
}

function majorOf({ channel, guild, webhook, token }: Readonly<Record<string, string>>): string {
  if (webhook !== undefined) return `webhook ${webhook} ${token?.slice(0, 8) ?? ""}`;
  if (channel !== undefined) return `channel ${channel}`;
  return guild === undefined ? "everything" : `guild ${guild}`;
}

export const NO_CONTENT: Reply = { status: 204 };

export function ok(body: Payload | readonly Payload[]): Reply {
  return { status: 200, body };
}
