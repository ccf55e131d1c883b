import type { MiddlewareHandler } from "hono";
import { bindingsOf } from "./bindings.ts";

/** Written plainly or in percent. The paths of this service need no other characters. */
const SEGMENT = /^(?:[\w!$&'()*+,=:@~.-]|%[0-9a-f]{2})*$/i;
/** Control characters, `%`, `.`, `/`, `;`, `\`, and whatever is no ASCII: each reads as another path to somebody. */
const HIDDEN = /%(?:[01][0-9a-f]|2[5ef]|3b|5c|7f|[89a-f][0-9a-f])/i;

/**
 * Answers requests that programs read differently as an unknown path, or with 400 without a possible host. The path
 * counts as sent: one resolved only here would lead around a proxy that lets some paths through.
 */
export const refuseOddRequests: MiddlewareHandler = async (context, next) => {
  const { incoming } = bindingsOf(context);
  const { host } = incoming.headers;
  if (host !== undefined && !URL.canParse(`http://${host}`)) {
    return context.json({ error: "The header Host names no host." }, 400);
  }
  return isPlainTarget(incoming.url ?? "") ? next() : context.notFound();
};

/** The target of a request as it stands in its first line, with its query, which is not looked at. */
export function isPlainTarget(target: string): boolean {
  // A proxy's form, with the whole address, leads to the same path.
  const [path = ""] = target.replace(/^https?:\/\/[^/?#]*/i, "").split("?", 1);
  const [before, ...segments] = path.split("/");
  if (before !== "" || segments.length === 0) return path === "";
  return segments.every((segment, index) => {
    const isLast = index === segments.length - 1;
    if (segment === "") return isLast;
    return segment !== "." && segment !== ".." && SEGMENT.test(segment) && !HIDDEN.test(segment);
  });
}
