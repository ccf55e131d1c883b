import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { findPackageJSON, stripTypeScriptTypes } from "node:module";
import { type Context, Hono } from "hono";

const SHARED = new URL("page/", import.meta.url);
const IMPORT_MAP = /<script type="importmap">([\s\S]*?)<\/script>/;

export interface PageAssetsOptions {
  /** The page's folder, with `index.html` and all modules, styles and images. */
  folder: URL;
  /** Paths that show `index.html`. */
  paths: readonly string[];
  /** The start of the paths of all other files, such as "/assets". */
  at: string;
  /** The package files that the server gives out, by package: file names, or a folder of fonts that ends in "/". */
  vendor: ReadonlyMap<string, readonly string[]>;
  /** Packages that the page loads only when it needs them. */
  onDemand?: readonly string[];
  /** The names of the Trusted Types policies with which the page's libraries create markup. */
  trustedTypes: readonly string[];
}

interface Asset {
  contentType: string;
  body: string | Uint8Array<ArrayBuffer>;
  etag: string;
}

const assets = new Map<string, Asset>();

/** Serves a page and all files that it loads. Reads a file, and removes its types, on the first request. */
export function createPageAssets(options: PageAssetsOptions): Hono {
  const { folder, paths, at, vendor, onDemand = [], trustedTypes } = options;
  const readers = new Map<string, () => Asset>();
  for (const from of [SHARED, folder]) {
    for (const name of readdirSync(from)) {
      const read = toPageReader(new URL(name, from));
      if (read !== undefined) readers.set(`${at}/${name}`, read);
    }
  }
  for (const [name, files] of vendor) {
    const root = findPackageJSON(name, import.meta.url);
    if (root === undefined) throw new Error(`The package ${name} is missing: run npm ci.`);
    for (const file of files.flatMap((each) => (each.endsWith("/") ? fontsIn(each, root) : [each]))) {
      const read = toPageReader(new URL(file, `file://${root}`));
      if (read !== undefined) readers.set(`${at}/vendor/${name}/${file}`, read);
    }
  }
  const isOnDemand = (path: string) => onDemand.some((name) => path.startsWith(`${at}/vendor/${name}/`));
  const html = readFileSync(new URL("index.html", folder), "utf8");
  const page = toAsset(
    "text/html",
    withPreloads(
      html,
      [...readers.keys()].filter((path) => !isOnDemand(path)),
    ),
  );
  const policy = toPolicy(html, trustedTypes);

  function open(path: string): Asset | undefined {
    const asset = assets.get(path) ?? readers.get(path)?.();
    if (asset !== undefined) assets.set(path, asset);
    return asset;
  }

  const app = new Hono();
  for (const path of paths) {
    app.get(path, (c) => {
      c.header("Content-Security-Policy", policy);
      c.header("Permissions-Policy", "camera=(), microphone=(), geolocation=()");
      return serve(c, page);
    });
  }
  return app.get(`${at}/*`, (c) => {
    const asset = open(c.req.path);
    return asset === undefined ? c.json({ error: "This page has no such file." }, 404) : serve(c, asset);
  });
}

/** Browsers revalidate on every load, so they see a new release at once. An unchanged file costs only a short 304. */
function serve(c: Context, { contentType, body, etag }: Asset): Response {
  c.header("ETag", etag);
  c.header("Cache-Control", "no-cache");
  if (c.req.header("if-none-match") === etag) return c.body(null, 304);
  c.header("Content-Type", typeof body === "string" ? `${contentType}; charset=utf-8` : contentType);
  return c.body(body);
}

/** Lists the fonts in one format, which every supported browser can read. */
function fontsIn(folder: string, root: string): string[] {
  const names = readdirSync(new URL(folder, `file://${root}`));
  return names.filter((name) => name.endsWith(".woff2")).map((name) => folder + name);
}

/** Undefined if the file does not belong to a page. */
function toPageReader(url: URL): (() => Asset) | undefined {
  const name = url.pathname;
  const read = () => readFileSync(url, "utf8");
  if (name.endsWith(".d.ts")) return undefined;
  if (name.endsWith(".ts")) return () => toAsset("text/javascript", stripTypeScriptTypes(read()));
  if (/\.m?js$/.test(name)) return () => toAsset("text/javascript", read());
  if (name.endsWith(".css")) return () => toAsset("text/css", read());
  if (name.endsWith(".svg")) return () => toAsset("image/svg+xml", read());
  if (name.endsWith(".woff2")) return () => toAsset("font/woff2", new Uint8Array(readFileSync(url)));
  return undefined;
}

function toAsset(contentType: string, body: Asset["body"]): Asset {
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  return { contentType, body, etag: `"${hash}"` };
}

/** Makes the browser load all modules in parallel, instead of discovering them one after another. */
function withPreloads(html: string, paths: readonly string[]): string {
  const modules = paths.filter((path) => /\.(ts|m?js)$/.test(path) && !path.endsWith("/wire.ts"));
  const links = modules.map((path) => `<link rel="modulepreload" href="${path}">`);
  return html.replace("<!-- modulepreload -->", links.join("\n    "));
}

/** Allows only the page's own scripts, and markup from strings only by the libraries in `trustedTypes`. */
function toPolicy(html: string, trustedTypes: readonly string[]): string {
  const importMap = IMPORT_MAP.exec(html)?.[1] ?? "";
  const hash = createHash("sha256").update(importMap).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "font-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    `trusted-types ${trustedTypes.join(" ")}`,
  ].join("; ");
}
