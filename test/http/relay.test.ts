import { DatabaseSync } from "node:sqlite";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { owner } from "../../lab/support/picture-turn.ts";
import { createRelayRoutes } from "../../src/http/relay.ts";
import { createLogger } from "../../src/log/log.ts";
import { createRelay } from "../../src/media/relay.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { send, startServer } from "./http.ts";

const BYTES = Uint8Array.from({ length: 5_000 }, (_, index) => index % 251);
const ref = { platform: "slack", id: "F1", name: "cat.png", sizeBytes: BYTES.length };

/** The server with a relay, before a handler that answers every other path. */
async function setUp() {
  let now = Date.now();
  const lines: string[] = [];
  const log = createLogger({
    level: "trace",
    secrets: [],
    tokens: [],
    destination: { write: (line) => void lines.push(line) },
  });
  const database = new DatabaseSync(":memory:");
  const relay = createRelay({
    keys: ["k".repeat(32)],
    open: createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT).open,
    isGone: async () => false,
    read: () => Promise.reject(new Error("nothing is read here")),
    log,
    now: () => now,
  });
  const page = new Hono().all("*", (context) => context.text("page", 200, { "x-page": "yes" }));
  const server = await startServer({ log, mounts: [createRelayRoutes(relay), page] });
  const path = await relay.publish(ref, { bytes: BYTES, mimeType: "image/png" }, owner);
  return { url: server.url, path, lines, advance: (ms: number) => (now += ms) };
}

/** Removes the Date header, which can differ between two equal responses. */
function withoutDate(answer: string): string {
  return answer.replace(/^date: .*\r\n/im, "");
}

describe("createRelayRoutes", () => {
  test("the relay serves an image with its type, its length and strict headers", async () => {
    const { url, path } = await setUp();
    const response = await fetch(url + path);
    expect(response.status).toBe(200);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(BYTES);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "image/png",
      "content-length": String(BYTES.length),
      "content-disposition": 'inline; filename="picture.png"',
      "x-content-type-options": "nosniff",
      "cache-control": "private, no-store",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "content-security-policy": expect.stringContaining("default-src 'none'") as unknown,
      "accept-ranges": "none",
    });
    expect([...response.headers.keys()].filter((name) => /^(access-control|set-cookie|location)/.test(name))).toEqual(
      [],
    );
  });

  test("the relay answers HEAD with the same headers and no body", async () => {
    const { url, path } = await setUp();
    const [head = "", body] = (await send(url, path, "HEAD")).split("\r\n\r\n");
    const [fullHead = ""] = (await send(url, path)).split("\r\n\r\n");
    expect(withoutDate(`${head}\r\n`)).toBe(withoutDate(`${fullHead}\r\n`));
    expect(head).toMatch(/content-length: 5000/i);
    expect(body).toBe("");
  });

  test.each(["bytes=0-99", "bytes=5000-", `bytes=${"0-0,".repeat(1_000)}0-0`])(
    "the relay answers the range %s with the whole image",
    async (range) => {
      const { url, path } = await setUp();
      const response = await fetch(url + path, { headers: { range } });
      expect(response.status).toBe(200);
      expect(response.headers.has("content-range")).toBe(false);
      expect((await response.arrayBuffer()).byteLength).toBe(BYTES.length);
    },
  );

  test("the relay answers every bad link in the same words as an unknown path", async () => {
    const { url, path } = await setUp();
    const [, , , token = ""] = path.split("/");
    const expected = withoutDate(await send(url, "/relay/anything"));
    expect(expected).toMatch(/^HTTP\/1\.1 404 /);
    expect(expected).not.toMatch(/x-page/i);
    const wrong = [
      "/relay/",
      `/relay/v1/${token}`,
      `/relay/v1/${token}/picture.jpg`,
      `/relay/v1/${token}/picture.png/`,
      `/relay/v1/${token}/picture.png?download=1`,
      `/relay/v1/${token}/picture.png%00`,
      `/relay/v1/${token}/%2570icture.png`,
      `/relay/v1/..%2f..%2f..%2fetc%2fpasswd/picture.png`,
      `/relay/v1/%zz/picture.png`,
      `/relay/v1/${"A".repeat(8_000)}/picture.png`,
      `/relay/v1/${token.toLowerCase()}/picture.png`,
    ];
    const answers = await Promise.all(wrong.map((target) => send(url, target)));
    expect(wrong.filter((_, index) => withoutDate(answers[index] ?? "") !== expected)).toEqual([]);
  });

  test.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"])(
    "the relay serves nothing for %s",
    async (method) => {
      const { url, path } = await setUp();
      expect(withoutDate(await send(url, path, method))).toBe(withoutDate(await send(url, "/relay/anything", method)));
    },
  );

  test("the relay answers an expired link in the same words as an unknown one", async () => {
    const { url, path, advance } = await setUp();
    expect(await send(url, path)).toMatch(/^HTTP\/1\.1 200 /);
    advance(60 * 60_000);
    expect(withoutDate(await send(url, path))).toBe(withoutDate(await send(url, "/relay/anything")));
    expect(withoutDate(await send(url, path, "HEAD"))).toBe(withoutDate(await send(url, "/relay/anything", "HEAD")));
  });

  test("the relay serves no image that it cannot read, and logs no path", async () => {
    const { url, path, lines } = await setUp();
    await send(url, path);
    await send(url, path.replace(/.{10}\/picture/, "AAAAAAAAAA/picture"));
    const [, , , token = ""] = path.split("/");
    expect(lines.join("")).not.toContain(token.slice(0, 20));
  });

  test("the relay leaves every other path to later routes", async () => {
    const { url } = await setUp();
    expect(await (await fetch(`${url}/relays/v1/x`)).text()).toBe("page");
  });
});
