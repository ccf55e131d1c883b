import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { isPlainTarget } from "../../src/http/odd-requests.ts";
import { send, startServer } from "./http.ts";

/** The server with one route that a proxy allows and one that the proxy blocks. */
async function setUp() {
  const app = new Hono().all("/relay/*", (context) => context.notFound()).get("/local/events", (c) => c.text("stream"));
  const { url } = await startServer({ mounts: [app] });
  return (target: string) => send(url, target, "GET", "127.0.0.1");
}

const PARENTS = [
  "..",
  "%2e%2e",
  "%2E.",
  ".%2e",
  "%252e%252e",
  "..;",
  "..;x=1",
  "%2e%2e;",
  "..%00",
  "..%20",
  "..%2f..",
  "..%5c..",
  "..\\..",
  "%c0%ae%c0%ae",
  "%ef%bc%8e%ef%bc%8e",
  "",
  ".",
];

describe("a way around a proxy that allows only /relay/", () => {
  test.each(PARENTS)("no request gets around the proxy's rule with the segment %j", async (parent) => {
    const send = await setUp();
    for (const end of ["metrics", "healthz", "local/events", "%6detrics"]) {
      for (const start of ["/relay", "/relay/v1", "//relay", "http://127.0.0.1/relay"]) {
        for (const target of [`${start}/${parent}/${end}`, `${start}/${parent}/${parent}/${end}`]) {
          expect(await send(target)).toMatch(/^HTTP\/1\.1 4\d\d /);
        }
      }
    }
  });

  test("the service leaves plain paths unchanged, even if a proxy sends the whole address", async () => {
    const send = await setUp();
    for (const target of ["/healthz", "/local/events?since=0&x=/../..", "http://127.0.0.1/healthz"]) {
      expect(await send(target)).toMatch(/^HTTP\/1\.1 200 /);
    }
  });
});

describe("isPlainTarget", () => {
  test("isPlainTarget accepts every path of the service", () => {
    for (const target of [
      "/",
      "/?a=b;c",
      "/healthz",
      "/slack/oauth_redirect?code=1.2&state=a%2Fb",
      "/assets/vendor/@highlightjs/cdn-assets/es/highlight.min.js",
      "/local/messages/12/edit",
      "/local/pictures/t_1-a.1",
      "/local/pictures/a%3Ab",
      `/relay/v1/${"A_-".repeat(24)}/picture.png`,
      "/folder/",
    ]) {
      expect(isPlainTarget(target), target).toBe(true);
    }
  });

  test("isPlainTarget rejects every other form of a target", () => {
    for (const target of ["*", "here:443", "ftp://here/", "healthz", "#/", "/a#b", "/ü", "/a b", "/%zz", "/%"]) {
      expect(isPlainTarget(target), target).toBe(false);
    }
  });
});
