import { Hono } from "hono";
import type { Relay } from "../media/relay.ts";

/** Headers that forbid to cache a picture, to guess its type, to run it, or to frame it in another page. */
const HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-store",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "x-robots-tag": "noindex",
  // A range is answered with the whole.
  "accept-ranges": "none",
};

/** `GET` and `HEAD` of relayed pictures; 404 for anything wrong. Paths are keys, and stay out of the log. */
export function createRelayRoutes(relay: Pick<Relay, "open">): Hono {
  return new Hono().all("/relay/*", async (context) => {
    const { method, url, raw } = context.req;
    if (method !== "GET" && method !== "HEAD") return context.notFound();
    const picture = await relay.open(toPath(url), raw.signal).catch(() => undefined);
    if (picture === undefined) return context.notFound();
    const { bytes, mimeType } = picture;
    return context.body(bytes as Uint8Array<ArrayBuffer>, 200, {
      ...HEADERS,
      "content-type": mimeType,
      "content-length": String(bytes.byteLength),
      "content-disposition": `inline; filename="picture.${mimeType.replace("image/", "")}"`,
    });
  });
}

/** The path as it was requested: not decoded, and with its query, as a link has none. */
function toPath(url: string): string {
  return url.replace(/^https?:\/\/[^/?#]*/i, "");
}
