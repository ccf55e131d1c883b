import { Keyv } from "keyv";
import { expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { startCountingServer, toMcpConfig } from "../../lab/support/mcp-world.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import { createTokenStore } from "../../src/mcp/tokens.ts";
import { createSeal } from "../../src/port/seal.ts";

/** A tool server that requires a token, and its authorization server, at the same address. */
async function startGuarded() {
  const asked: string[] = [];
  let valid = "token-1";

  function guard({ url, headers }: Request): Response | undefined {
    const { origin, pathname } = new URL(url);
    const authorization = headers.get("authorization") ?? "";
    if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
      return Response.json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
    }
    if (pathname.startsWith("/.well-known/oauth-authorization-server")) {
      return Response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ["code"],
        grant_types_supported: ["client_credentials"],
        token_endpoint_auth_methods_supported: ["client_secret_basic"],
      });
    }
    if (pathname === "/token") {
      asked.push(Buffer.from(authorization.replace("Basic ", ""), "base64").toString());
      return Response.json({ access_token: valid, token_type: "Bearer", expires_in: 3_600 });
    }
    if (authorization === `Bearer ${valid}`) return undefined;
    const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`;
    return Response.json({ error: "invalid_token" }, { status: 401, headers: { "www-authenticate": challenge } });
  }

  const counter = await startCountingServer(guard);
  onTestFinished(counter.close);
  return { url: counter.url, asked, expire: () => void (valid = "token-2") };
}

test("the client requests a server's token once, stores it encrypted across a restart, and requests another when it is rejected", async () => {
  const { url, asked, expire } = await startGuarded();
  const keyv = new Keyv();
  const key = new Uint8Array(32).fill(7);
  const oauth = { clientId: "palaver", clientSecret: "hush", issuer: new URL(url).origin, scope: undefined };
  const config = toMcpConfig("shop", { type: "http", url, headers: {}, oauth });

  /** One run of the service. */
  async function live(sealKey = key) {
    const tokens = createTokenStore({ keyv, seal: createSeal(sealKey), log: silent });
    const servers = createMcpServers([config], silent, { tokens });
    await servers.tried();
    const [report] = servers.report({ platform: "test", channelId: "c" });
    await servers.close();
    return report?.state;
  }

  expect([await live(), asked]).toEqual(["ready", ["palaver:hush"]]);
  expect([await live(), asked.length]).toEqual(["ready", 1]);
  const stored = await Array.fromAsync(keyv.iterator?.(undefined) ?? []);
  expect(stored).toHaveLength(1);
  expect(JSON.stringify(stored)).not.toMatch(/token-1|hush/);
  expire();
  expect([await live(), asked.length]).toEqual(["ready", 2]);
  expect([await live(), asked.length]).toEqual(["ready", 2]);
  // With another key, none of the stored values can be read.
  expect([await live(new Uint8Array(32).fill(8)), asked.length]).toEqual(["ready", 3]);
});

test("the client reads metadata only from the configured origins, and sends a server's headers only to that server", async () => {
  async function startRecording(answer: (path: string, origin: string) => object | undefined) {
    const asked: string[] = [];
    const server = await startCountingServer(({ url, headers }) => {
      const { pathname, origin } = new URL(url);
      asked.push(`${pathname} ${headers.get("x-own")}`);
      const body = answer(pathname, origin);
      return Response.json(body ?? {}, { status: body === undefined ? 404 : 200 });
    });
    onTestFinished(server.close);
    return { url: new URL(server.url).origin, asked };
  }
  const stranger = await startRecording(() => ({ authorization_servers: ["http://127.0.0.1:1"] }));
  const issuer = await startRecording((path, origin) => {
    if (path === "/token") return { access_token: "token", token_type: "Bearer" };
    if (path !== "/.well-known/oauth-authorization-server") return undefined;
    const endpoints = { authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` };
    return { issuer: origin, ...endpoints, response_types_supported: ["code"] };
  });
  const own = new Set<string | null>();
  const shop = await startCountingServer(({ headers }) => {
    own.add(headers.get("x-own"));
    if (headers.get("authorization") === "Bearer token") return undefined;
    const challenge = `Bearer resource_metadata="${stranger.url}/metadata"`;
    return Response.json({}, { status: 401, headers: { "www-authenticate": challenge } });
  });
  onTestFinished(shop.close);
  const oauth = { clientId: "palaver", clientSecret: "hush", issuer: issuer.url, scope: undefined };
  const transport = { type: "http", url: shop.url, headers: { "X-Own": "key-of-shop" }, oauth } as const;
  const servers = createMcpServers([toMcpConfig("shop", transport)], silent);
  onTestFinished(() => servers.close());
  await servers.tried();
  expect(servers.report({ platform: "test", channelId: "c" })).toMatchObject([{ state: "ready" }]);
  expect([...own]).toEqual(["key-of-shop"]);
  expect(issuer.asked).toEqual(["/.well-known/oauth-authorization-server null", "/token null"]);
  expect(stranger.asked).toEqual([]);
});
