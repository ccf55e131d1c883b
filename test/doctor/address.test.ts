import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, test } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { checkAddress } from "../../src/doctor/address.ts";
import { findEventsAddresses } from "../../src/doctor/platforms.ts";
import { readConfig } from "../support/config.ts";
import { listenUntilTestEnds } from "../support/listen.ts";

const { signal } = new AbortController();
const SLACK_HTTP = { SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: "0f".repeat(16) };

async function serve(answer: RequestListener, port = 0): Promise<number> {
  return Number(new URL(await listenUntilTestEnds(createServer(answer), port)).port);
}

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
  return checkAddress(config, findEventsAddresses(config), signal);
}

describe("the doctor's check of the port", () => {
  test("the doctor finds a free port, and leaves it free", async () => {
    const port = await freePort();
    expect(await check({}, port)).toEqual([{ ok: true, what: `Port ${port} on 127.0.0.1 is free.` }]);
    const socket = connect(port, "127.0.0.1");
    const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });

  test("the doctor finds a port that another program or the running service uses", async () => {
    const other = await serve((_, response) => response.end("hello"));
    expect(await check({}, other)).toEqual([
      { ok: false, what: expect.stringContaining("in use by another program"), fix: expect.stringContaining("PORT") },
    ]);
    const service = await serve((_, response) => response.end('{"status":"ok"}'));
    expect(await check({}, service)).toEqual([{ ok: true, what: `Palaver is already running on port ${service}.` }]);
  });

  test("the doctor reports an address of another machine", async () => {
    const found = await check({ HOST: "192.0.2.1", LOCAL_CHAT: "off" }, await freePort());
    expect(found).toMatchObject([{ ok: false, fix: expect.stringContaining("HOST") }]);
  });
});

describe("the doctor's check of PUBLIC_URL", () => {
  test("the doctor requires no PUBLIC_URL for Slack from a worker, which receives no events", () => {
    const find = (ROLE: string) =>
      findEventsAddresses(readConfig({ ...SLACK_HTTP, ROLE, REDIS_URL: "redis://127.0.0.1:1" })).map(
        ({ path }) => path,
      );
    expect(["all", "ingress", "worker"].map(find)).toEqual([["/slack/events"], ["/slack/events"], []]);
  });

  test("the doctor accepts a PUBLIC_URL that leads to the service, directly or through a proxy", async () => {
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
    ["another service", (_, response) => response.end('{"status":"ok"}'), /Something else answers/],
    ["a page that is not there", (_, response) => response.writeHead(404).end(), /status 404/],
    ["a redirect", (_, response) => response.writeHead(302, { location: "/" }).end(), /redirects elsewhere/],
  ] satisfies [string, RequestListener, RegExp][])(
    "the doctor accepts a PUBLIC_URL that leads to %s",
    async (_, answer, words) => {
      const elsewhere = await serve(answer);
      const [, found] = await check({ PUBLIC_URL: `http://127.0.0.1:${elsewhere}` }, await freePort());
      expect(found).toEqual({
        ok: false,
        what: expect.stringMatching(words),
        fix: expect.stringContaining("proxy"),
      });
    },
  );

  test("the doctor reports a PUBLIC_URL that leads nowhere", async () => {
    const [, refused] = await check({ PUBLIC_URL: `http://127.0.0.1:${await freePort()}` }, await freePort());
    expect(refused).toMatchObject({ ok: false, what: expect.stringContaining("ECONNREFUSED") });
    const [, unknown] = await check({ PUBLIC_URL: "https://palaver.invalid" }, await freePort());
    expect(unknown).toMatchObject({ ok: false, what: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) });
  });

  test("the doctor checks PUBLIC_URL with a request like Slack's in HTTP mode", async () => {
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

  test("the doctor requires PUBLIC_URL only for Slack's events", async () => {
    const [, ...found] = await check(SLACK_HTTP, await freePort());
    expect(found).toEqual([{ ok: true, what: expect.stringContaining("PUBLIC_URL is not set") }]);
  });
});
