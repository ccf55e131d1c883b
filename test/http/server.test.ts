import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test } from "vitest";
import { type HttpServerOptions } from "../../src/http/server.ts";
import { createLogger } from "../../src/log/log.ts";
import { send, startServer } from "./http.ts";

async function start(options: Partial<HttpServerOptions> = {}) {
  const lines: string[] = [];
  const log = createLogger({
    level: "info",
    secrets: [],
    tokens: [],
    destination: { write: (line) => void lines.push(line) },
  });
  return { ...(await startServer({ log, ...options })), lines };
}

async function openSocket(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

describe("the HTTP server", () => {
  test("the server answers health, readiness and metrics on its port", async () => {
    const { url } = await start({ health: { store: () => Promise.resolve(false) } });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    const metrics = await fetch(`${url}/metrics`);
    expect(metrics.headers.get("content-type")).toMatch(/^text\/plain; version=/);
    expect(await metrics.text()).toContain("palaver_");
  });

  test("the server serves mounted routes in order, after its own", async () => {
    const first = new Hono()
      .get("/", (context) => context.text("page"))
      .get("/healthz", (context) => context.text("mine"));
    const second = new Hono().post("/slack/events", async (context) => context.text(await context.req.text()));
    const { url } = await start({ mounts: [first, second] });
    expect(await (await fetch(url)).text()).toBe("page");
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
    expect(await (await fetch(`${url}/slack/events`, { method: "POST", body: "raw" })).text()).toBe("raw");
  });

  test("the server shows its sentences at / if nothing is mounted there", async () => {
    const about = ["It answers on <Slack>."];
    const { url } = await start({ about });
    const answer = await fetch(url);
    expect(answer.headers.get("content-type")).toContain("text/html");
    expect(await answer.text()).toContain("<p>It answers on &lt;Slack&gt;.</p>");
    const mounted = await start({ about, mounts: [new Hono().get("/", (context) => context.text("page"))] });
    expect(await (await fetch(mounted.url)).text()).toBe("page");
  });

  test("the server answers an unknown path in JSON", async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/nothing<script>`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toEqual({ error: "There is nothing at this address." });
  });

  test("the server hides the cause of a failure from clients, and logs it", async () => {
    const failing = new Hono().get("/fail", () => {
      throw new Error("inner workings");
    });
    const { url, lines } = await start({ mounts: [failing] });
    const answer = await fetch(`${url}/fail?token=x`);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("inner workings");
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
      { level: "error", method: "GET", path: "/fail", err: { stack: expect.stringContaining("server.test.ts") } },
    ]);
  });

  test("the log reduces a relayed image's path to a placeholder", async () => {
    const failing = new Hono().get("/relay/*", () => {
      throw new Error("inner workings");
    });
    const { url, lines } = await start({ mounts: [failing] });
    await fetch(`${url}/relay/v1/key/picture.png`);
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([{ path: "/relay/…" }]);
  });

  test("the server rejects an invalid Host without logging a failure", async () => {
    const page = new Hono().get("/", (context) => context.text(new URL(context.req.raw.clone().url).host));
    const { url, lines } = await start({ mounts: [page] });
    const ask = (host: string) => send(url, "/", "GET", host);
    for (const host of ["127.999.1.1", "1.2.3.4.5", "0x7f.1.1.1.1", "127.0.0.1:99999", "[::1", "a b"]) {
      expect(await ask(host)).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(await ask("here.example:8080")).toMatch(/^HTTP\/1\.1 200 [^]*here\.example:8080$/);
    expect(lines).toEqual([]);
  });

  test("the log reports no failure if a client disconnects before its answer", async () => {
    const entered = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const slow = new Hono().get("/slow", async (context) => {
      entered.resolve();
      await once(context.req.raw.signal, "abort");
      setImmediate(ended.resolve);
      throw new Error("The work was given up.");
    });
    const { url, lines } = await start({ mounts: [slow] });
    const socket = await openSocket(url);
    socket.write("GET /slow HTTP/1.1\r\nHost: here\r\n\r\n");
    await entered.promise;
    socket.destroy();
    await ended.promise;
    expect(lines).toEqual([]);
  });

  test("the server names the port and PORT if another program uses it", async () => {
    const { url } = await start();
    const port = Number(new URL(url).port);
    await expect(start({ port })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is in use by another program: stop that program, or set PORT`,
    );
  });

  test("the server names HOST if it is not an address of this machine", async () => {
    await expect(start({ host: "192.0.2.1" })).rejects.toThrow(/^HOST 192\.0\.2\.1 is not an address of this machine/);
  });

  test("the server names an address that people can open if it listens everywhere", async () => {
    const { url } = await start({ host: "0.0.0.0" });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});

describe("closing the HTTP server", () => {
  test("closing the server ends idle connections, used or not", async () => {
    const server = await start({ closeTimeoutMs: 600_000 });
    const [unused, used] = [await openSocket(server.url), await openSocket(server.url)];
    used.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await once(used, "data");
    const ended = Promise.all([once(unused, "close"), once(used, "close")]);
    await server.close();
    await ended;
  });

  test("closing the server waits for a running answer, then ends its connection", async () => {
    const gate = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const slow = new Hono().get("/slow", async (context) => {
      entered.resolve();
      await gate.promise;
      return context.text("whole");
    });
    const server = await start({ mounts: [slow], closeTimeoutMs: 600_000 });
    const answer = fetch(`${server.url}/slow`);
    await entered.promise;
    const closed = server.close();
    expect(server.close()).toBe(closed);
    gate.resolve();
    expect(await (await answer).text()).toBe("whole");
    await closed;
    await expect(fetch(server.url)).rejects.toThrow();
  });

  test("closing the server aborts a stream that does not end in time", async () => {
    const endless = new Hono().get("/stream", (context) =>
      context.body(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array(1)) })),
    );
    const server = await start({ mounts: [endless], closeTimeoutMs: 50 });
    const answer = await fetch(`${server.url}/stream`);
    const body = answer.text();
    body.catch(() => {});
    await server.close();
    await expect(body).rejects.toThrow();
  });
});
