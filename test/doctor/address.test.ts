import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, test } from "vitest";
import { type Config, readConfig } from "../../src/config/config.ts";
import { checkAddress } from "../../src/doctor/address.ts";
import { findEventsAddress } from "../../src/doctor/platforms.ts";
import { listenUntilTestEnds } from "../support/listen.ts";

const { signal } = new AbortController();
const SLACK_HTTP = { SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: "0f".repeat(16) };

async function serve(answer: RequestListener, port = 0): Promise<number> {
  return Number(new URL(await listenUntilTestEnds(createServer(answer), port)).port);
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function check(env: Record<string, string>, port: number): ReturnType<typeof checkAddress> {
  const config: Config = readConfig({ PORT: String(port), ...env });
  return checkAddress(config, findEventsAddress(config), signal);
}

describe("the port", () => {
  test("the port may be free, and is free again afterwards", async () => {
    const port = await freePort();
    expect(await check({}, port)).toEqual([{ ok: true, what: `Port ${port} on 127.0.0.1 is free.` }]);
    const socket = connect(port, "127.0.0.1");
    const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });

  test("the port may be another program's, or that of a service that runs already", async () => {
    const other = await serve((_, response) => response.end("hello"));
    expect(await check({}, other)).toEqual([
      { ok: false, what: expect.stringContaining("taken by another program"), fix: expect.stringContaining("PORT") },
    ]);
    const service = await serve((_, response) => response.end('{"status":"ok"}'));
    expect(await check({}, service)).toEqual([{ ok: true, what: `Palaver runs at port ${service} already.` }]);
  });

  test("a port cannot be had on an address of another machine", async () => {
    const found = await check({ HOST: "192.0.2.1", LOCAL_CHAT: "off" }, await freePort());
    expect(found).toMatchObject([{ ok: false, fix: expect.stringContaining("HOST") }]);
  });
});

describe("PUBLIC_URL", () => {
  test("PUBLIC_URL need not lead Slack's events to a worker, which hears none", () => {
    const find = (ROLE: string) =>
      findEventsAddress(readConfig({ ...SLACK_HTTP, ROLE, REDIS_URL: "redis://127.0.0.1:1" }))?.path;
    expect(["all", "ingress", "worker"].map(find)).toEqual(["/slack/events", "/slack/events", undefined]);
  });

  test("PUBLIC_URL may lead here, directly or through a proxy", async () => {
    const port = await freePort();
    const proxy = await serve((request, response) => {
      void fetch(`http://127.0.0.1:${port}${request.url}`, { method: request.method ?? "GET" })
        .then((answer) => answer.text())
        .then((text) => response.end(text));
    });
    for (const PUBLIC_URL of [`http://127.0.0.1:${port}`, `http://127.0.0.1:${proxy}`]) {
      const [, found] = await check({ PUBLIC_URL }, port);
      expect(found).toEqual({ ok: true, what: `${PUBLIC_URL}/healthz leads here.` });
    }
  });

  test.each([
    ["another service", (_, response) => response.end('{"status":"ok"}'), /something else answers/],
    ["a page that is not there", (_, response) => response.writeHead(404).end(), /status 404/],
    ["a redirect", (_, response) => response.writeHead(302, { location: "/" }).end(), /redirects elsewhere/],
  ] satisfies [string, RequestListener, RegExp][])("PUBLIC_URL may lead to %s", async (_, answer, words) => {
    const elsewhere = await serve(answer);
    const [, found] = await check({ PUBLIC_URL: `http://127.0.0.1:${elsewhere}` }, await freePort());
    expect(found).toEqual({
      ok: false,
      what: expect.stringMatching(words),
      fix: expect.stringContaining("proxy"),
    });
  });

  test("PUBLIC_URL may lead nowhere", async () => {
    const [, refused] = await check({ PUBLIC_URL: `http://127.0.0.1:${await freePort()}` }, await freePort());
    expect(refused).toMatchObject({ ok: false, what: expect.stringContaining("ECONNREFUSED") });
    const [, unknown] = await check({ PUBLIC_URL: "https://palaver.invalid" }, await freePort());
    expect(unknown).toMatchObject({ ok: false, what: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) });
  });

  test("PUBLIC_URL is where Slack's events go in HTTP mode, and is tried with a request like Slack's", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    expect((await check({ PUBLIC_URL: url, ...SLACK_HTTP }, port)).slice(1)).toEqual([
      { ok: true, what: `${url}/healthz leads here.` },
      { ok: true, what: `${url}/slack/events leads here.` },
    ]);
    const deaf = await serve((request, response) =>
      request.url === "/healthz" ? response.end('{"status":"ok"}') : response.writeHead(405).end(),
    );
    const found = await check({ PUBLIC_URL: `http://127.0.0.1:${deaf}`, ...SLACK_HTTP }, deaf);
    expect(found[2]).toMatchObject({ ok: false, what: expect.stringContaining("/slack/events") });
  });

  test("PUBLIC_URL is missed only by Slack's events", async () => {
    const [, ...found] = await check(SLACK_HTTP, await freePort());
    expect(found).toEqual([{ ok: true, what: expect.stringContaining("PUBLIC_URL is not set") }]);
  });
});
