import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createAssets } from "../../../../adapters/local/hear/assets.ts";

describe("the files of the page", () => {
  const assets = createAssets();
  const get = async (path: string, headers: Record<string, string> = {}) => assets.request(path, { headers });

  test("the page serves its own modules as JavaScript, without types", async () => {
    const response = await get("/assets/state.ts");
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    const code = await response.text();
    expect(code).toContain("export function createStore(");
    expect(code).not.toContain("interface Store");
  });

  test("the page serves every module that one of its modules imports", async () => {
    const names = readdirSync(new URL("../../../../adapters/local/page/", import.meta.url));
    const page = await (await get("/")).text();
    const map = JSON.parse(/<script type="importmap">([\s\S]*?)<\/script>/.exec(page)?.[1] ?? "{}") as {
      imports: Record<string, string>;
    };
    for (const name of names.filter((each) => each.endsWith(".ts") && !each.endsWith(".d.ts"))) {
      const code = await (await get(`/assets/${name}`)).text();
      for (const [, wanted = ""] of code.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)"/gm)) {
        const url = wanted.startsWith("./") ? `/assets/${wanted.slice(2)}` : resolve(wanted, map.imports);
        expect([wanted, (await get(url)).status]).toEqual([wanted, 200]);
      }
    }
  });

  test("the page serves every module that a library imports", async () => {
    const page = await (await get("/")).text();
    const vendor = [...page.matchAll(/href="(\/assets\/vendor\/[^"]+)"/g)].map(([, url = ""]) => url);
    expect(vendor.length).toBeGreaterThan(8);
    for (const url of vendor) {
      const code = await (await get(url)).text();
      for (const [, wanted = ""] of code.matchAll(/(?:^|[;}])import[^;"]*?from"(\.[^"]+)"/g)) {
        const found = new URL(wanted, `http://page${url}`).pathname;
        expect([found, (await get(found)).status]).toEqual([found, 200]);
      }
    }
  });

  test.for([
    "/assets/vendor/marked/package.json",
    "/assets/vendor/lit-html/../../index.ts",
    "/assets/../index.ts",
    "/assets/%2e%2e/index.ts",
    "/assets/vendor/%2e%2e%2f%2e%2e%2findex.ts",
    "/assets/index.html",
    "/assets/tsconfig.json",
    "/assets/highlight.d.ts",
    "/assets/",
  ])("the page serves no %s", async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  test("the page does not send unchanged files again", async () => {
    for (const path of ["/", "/assets/main.ts", "/assets/base.css"]) {
      const first = await get(path);
      const etag = first.headers.get("etag") ?? "";
      expect(first.headers.get("cache-control")).toBe("no-cache");
      expect((await get(path, { "If-None-Match": etag })).status).toBe(304);
      expect((await get(path, { "If-None-Match": '"other"' })).status).toBe(200);
    }
  });

  test("the page runs under a policy that allows its own scripts and the one import map", async () => {
    const response = await get("/");
    const policy = response.headers.get("content-security-policy") ?? "";
    const page = await response.text();
    const inline = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(([, code = ""]) => code);
    expect(inline).toHaveLength(1);
    const hash = createHash("sha256")
      .update(inline[0] ?? "")
      .digest("base64");
    expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`);
    for (const rule of [
      "default-src 'none'",
      "frame-ancestors 'none'",
      "connect-src 'self'",
      "img-src 'self' data: blob:",
    ]) {
      expect(policy).toContain(rule);
    }
    expect(policy).not.toContain("unsafe");
    expect(page).not.toMatch(/\son[a-z]+=|style="/);
  });
});

function resolve(name: string, imports: Record<string, string>): string {
  const exact = imports[name];
  if (exact !== undefined) return exact;
  const prefix = Object.keys(imports).find((each) => each.endsWith("/") && name.startsWith(each)) ?? "";
  return `${imports[prefix]}${name.slice(prefix.length)}`;
}
