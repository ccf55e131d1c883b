import { once } from "node:events";
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { networkInterfaces } from "node:os";
import { json, text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { startServer } from "./http.ts";

const TOKEN = "canary-metrics-token";
/** An address of this machine that other machines can reach. */
const OUTSIDE = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

async function setUp(metricsToken?: string) {
  const { log, lines } = recordingLog();
  const server = await startServer({ host: "0.0.0.0", log, health: { store: async () => true }, metricsToken });
  const { port } = new URL(server.url);

  async function get(path: string, headers: OutgoingHttpHeaders = {}, host = "127.0.0.1"): Promise<IncomingMessage> {
    const [response] = (await once(request({ host, port, path, headers }).end(), "response")) as [IncomingMessage];
    return response;
  }

  return {
    lines,
    get,
    async statusOf(headers?: OutgoingHttpHeaders, host?: string) {
      const response = await get("/metrics", headers, host);
      const body = await text(response);
      expect(body.includes("palaver_turns_total")).toBe(response.statusCode === 200);
      return response.statusCode;
    },
    async checksOf(headers?: OutgoingHttpHeaders, host?: string) {
      return json(await get("/readyz", headers, host));
    },
  };
}

const READY = { status: "ready" };

describe("the metrics and the details of /readyz without METRICS_TOKEN", () => {
  test("a program on this machine reads the metrics without a token", async () => {
    const { statusOf, checksOf } = await setUp();
    for (const Host of ["127.0.0.1:3000", "localhost", "[::1]:80"]) expect(await statusOf({ Host })).toBe(200);
    expect(await checksOf()).toEqual({ ...READY, checks: { store: "ok" } });
  });

  test.each([
    { "X-Forwarded-For": "127.0.0.1" },
    { Via: "1.1 proxy" },
    { Host: "bot.example" },
    { Host: "127.0.0.1.bot.example" },
  ] as OutgoingHttpHeaders[])("no one reads the metrics through a proxy on this machine: %j", async (headers) => {
    const { statusOf, checksOf } = await setUp();
    expect(await statusOf(headers)).toBe(403);
    expect(await statusOf({ ...headers, Authorization: "Bearer " })).toBe(403);
    expect(await checksOf(headers)).toEqual(READY);
  });

  test.runIf(OUTSIDE !== undefined)("no one reads the metrics at an address that others can reach", async () => {
    const { statusOf, checksOf } = await setUp();
    for (const headers of [{}, { Host: "127.0.0.1" }, { "X-Forwarded-For": "127.0.0.1" }]) {
      expect(await statusOf(headers, OUTSIDE)).toBe(403);
      expect(await checksOf(headers, OUTSIDE)).toEqual(READY);
    }
  });
});

describe("the metrics and the details of /readyz with METRICS_TOKEN", () => {
  test("anyone with METRICS_TOKEN reads the metrics from anywhere", async () => {
    const { statusOf, checksOf } = await setUp(TOKEN);
    const headers = { Authorization: `Bearer ${TOKEN}`, Host: "bot.example", "X-Forwarded-For": "203.0.113.9" };
    expect(await statusOf(headers, OUTSIDE)).toBe(200);
    expect(await checksOf(headers, OUTSIDE)).toEqual({ ...READY, checks: { store: "ok" } });
  });

  test("no one reads the metrics without METRICS_TOKEN, not even on this machine", async () => {
    const { statusOf, checksOf, get } = await setUp(TOKEN);
    for (const Authorization of [undefined, "Bearer", `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, "Bearer x"]) {
      const headers = Authorization === undefined ? {} : { Authorization };
      expect(await statusOf(headers)).toBe(401);
      expect(await checksOf(headers)).toEqual(READY);
    }
    expect((await get("/metrics")).headers["www-authenticate"]).toMatch(/^Bearer/);
    const ready = await get("/readyz");
    expect([ready.statusCode, ready.headers["www-authenticate"]]).toEqual([200, undefined]);
  });

  test("a client that guesses METRICS_TOKEN is locked out for a while, and the log omits the guess", async () => {
    const { statusOf, lines } = await setUp(TOKEN);
    const statuses: Array<number | undefined> = [];
    for (let n = 0; n < 8; n++) statuses.push(await statusOf({ Authorization: `Bearer canary-guess-${n}` }));
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401, 429, 429]);
    expect(lines).toHaveLength(6);
    expect(JSON.stringify(lines)).toContain("a wrong METRICS_TOKEN was given");
    expect(JSON.stringify(lines)).not.toContain("canary");
  });
});
