import type { MiddlewareHandler } from "hono";
import { bindingsOf } from "./bindings.ts";

/** Matches a path segment, literal or percent-encoded. No path of this service contains other characters. */
const SEGMENT = /^(?:[\w!$&'()*+,=:@~.-]|%[0-9a-f]{2})*$/i;
/** Matches encoded control characters, `%`, `.`, `/`, `;`, `\` and non-ASCII bytes: programs read them differently. */
const HIDDEN = /%(?:[01][0-9a-f]|2[5ef]|3b|5c|7f|[89a-f][0-9a-f])/i;

/**
 * Refuses requests that programs read in different ways: 404 for unusual paths, 400 for impossible hosts. Checks the
 * path before anything resolves it, because a request could otherwise bypass a proxy that allows only some paths.
 */
export const refuseOddRequests: MiddlewareHandler = async (context, next) => {
  const { incoming } = bindingsOf(context);
  const { host } = incoming.headers;
  if (host !== undefined && !URL.canParse(`http://${host}`)) {
    return context.json({ error: "The Host header does not contain a host." }, 400);
  }
  return isPlainTarget(incoming.url ?? "") ? next() : context.notFound();
};

/** True if the path has no unusual characters. Ignores the query. */
export function isPlainTarget(target: string): boolean {
  // Proxies can send the target as a full URL, whose path leads to the same place.
  const [path = ""] = target.replace(/^https?:\/\/[^/?#]*/i, "").split("?", 1);
  const [before, ...segments] = path.split("/");
  if (before !== "" || segments.length === 0) return path === "";
  return segments.every((segment, index) => {
    const isLast = index === segments.length - 1;
    if (segment === "") return isLast;
    return segment !== "." && segment !== ".." && SEGMENT.test(segment) && !HIDDEN.test(segment);
  });
}
