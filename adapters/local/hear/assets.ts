import type { Hono } from "hono";
import { createPageAssets } from "../../../src/http/page-assets.ts";

const VENDOR: ReadonlyMap<string, readonly string[]> = new Map([
  [
    "lit-html",
    [
      "lit-html.js",
      "directive.js",
      "directive-helpers.js",
      "async-directive.js",
      "directives/guard.js",
      "directives/live.js",
      "directives/ref.js",
      "directives/repeat.js",
    ],
  ],
  ["marked", ["lib/marked.esm.js"]],
  ["dompurify", ["dist/purify.es.mjs"]],
  ["remend", ["dist/index.js"]],
  ["@highlightjs/cdn-assets", ["es/highlight.min.js"]],
  ["katex", ["dist/katex.mjs", "dist/katex.min.css", "dist/fonts/"]],
]);

export function createAssets(): Hono {
  const folder = new URL("../page/", import.meta.url);
  return createPageAssets({
    folder,
    paths: ["/"],
    at: "/assets",
    vendor: VENDOR,
    onDemand: ["katex"],
    trustedTypes: ["lit-html", "dompurify"],
  });
}
