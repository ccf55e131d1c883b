import { Hono } from "hono";
import type { Relay } from "../media/relay.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-store",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "x-robots-tag": "noindex",
  // Range requests are not supported: they get the whole file.
  "accept-ranges": "none",
};

/** `GET` and `HEAD` for relayed images; 404 for any invalid request. The paths are secret and never logged. */
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

/** Returns the path as requested, not decoded. Keeps the query, so that a path with a query is invalid. */
function toPath(url: string): string {
  return url.replace(/^https?:\/\/[^/?#]*/i, "");
}
