import type { ReadBody } from "./body.ts";
import type { Payload } from "./world.ts";

/** One call in the form that a handler gets. */
export interface Call {
  /** The path's values by their names in the route's pattern. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  body: ReadBody;
}

export interface Reply {
  status: number;
  /** Absent if the status is 204. */
  body?: Payload | readonly Payload[];
}

export interface Route {
  /** The method and the pattern: `"PATCH /channels/:channel/messages/:message"`. */
  route: string;
  /** `token`: the call has an interaction's token in its path instead of the bot's token in a header. */
  access: "bot" | "token";
  /** If true, rate limits ignore the call. Used for acknowledgements. */
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
