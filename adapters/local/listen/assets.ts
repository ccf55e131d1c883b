import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { findPackageJSON, stripTypeScriptTypes } from "node:module";
import { type Context, Hono } from "hono";

const PAGE = new URL("../page/", import.meta.url);
/** The only files of other packages that are served: package, then file. The import map of the page names them. */
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
]);
const IMPORT_MAP = /<script type="importmap">([\s\S]*?)<\/script>/;

interface Asset {
  contentType: string;
  body: string;
  etag: string;
}

/** What was asked for in this process so far. */
const assets = new Map<string, Asset>();

/** The page and everything it loads, each read and stripped of types when it is first asked for. */
export function createAssets(): Hono {
  const readers = new Map<string, () => Asset>();
  for (const name of readdirSync(PAGE)) {
    const read = toPageReader(name);
    if (read !== undefined) readers.set(`/assets/${name}`, read);
  }
  for (const [name, files] of VENDOR) {
    const root = findPackageJSON(name, import.meta.url);
    if (root === undefined) throw new Error(`The package ${name} is missing: run npm ci.`);
    for (const file of files) {
      const url = new URL(file, `file://${root}`);
      readers.set(`/assets/vendor/${name}/${file}`, () => toAsset("text/javascript", readFileSync(url, "utf8")));
    }
  }
  const html = readFileSync(new URL("index.html", PAGE), "utf8");
  const page = toAsset("text/html", withPreloads(html, [...readers.keys()]));
  const policy = toPolicy(html);

  function open(path: string): Asset | undefined {
    const asset = assets.get(path) ?? readers.get(path)?.();
    if (asset !== undefined) assets.set(path, asset);
    return asset;
  }

  return new Hono()
    .get("/", (c) => {
      c.header("Content-Security-Policy", policy);
      c.header("Permissions-Policy", "camera=(), microphone=(), geolocation=()");
      return serve(c, page);
    })
    .get("/assets/*", (c) => {
      const asset = open(c.req.path);
      return asset === undefined ? c.json({ error: "There is no such file in the page." }, 404) : serve(c, asset);
    });
}

/** Always asked for again, so that a newer release is seen at once; the answer is a short 304 then. */
function serve(c: Context, { contentType, body, etag }: Asset): Response {
  c.header("ETag", etag);
  c.header("Cache-Control", "no-cache");
  if (c.req.header("if-none-match") === etag) return c.body(null, 304);
  c.header("Content-Type", `${contentType}; charset=utf-8`);
  return c.body(body);
}

/** Undefined for a file that is no part of the page. */
function toPageReader(name: string): (() => Asset) | undefined {
  const read = () => readFileSync(new URL(name, PAGE), "utf8");
  if (name.endsWith(".d.ts")) return undefined;
  if (name.endsWith(".ts")) return () => toAsset("text/javascript", stripTypeScriptTypes(read()));
  if (name.endsWith(".css")) return () => toAsset("text/css", read());
  if (name.endsWith(".svg")) return () => toAsset("image/svg+xml", read());
  return undefined;
}

function toAsset(contentType: string, body: string): Asset {
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  return { contentType, body, etag: `"${hash}"` };
}

/** All modules are fetched side by side instead of one import after another. */
function withPreloads(html: string, paths: readonly string[]): string {
  const modules = paths.filter((path) => /\.(ts|m?js)$/.test(path) && !path.endsWith("/wire.ts"));
  const links = modules.map((path) => `<link rel="modulepreload" href="${path}">`);
  return html.replace("<!-- modulepreload -->", links.join("\n    "));
}

/**
 * The page may run its own scripts and nothing else. Trusted Types keep even those from turning a string into
 * markup, except through the two libraries named; the import map is the one inline script, known by its hash.
 */
function toPolicy(html: string): string {
  const importMap = IMPORT_MAP.exec(html)?.[1] ?? "";
  const hash = createHash("sha256").update(importMap).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types lit-html dompurify",
  ].join("; ");
}
