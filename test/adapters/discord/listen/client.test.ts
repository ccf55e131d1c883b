import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { CloseCodes } from "discord.js";
import { expect, onTestFinished, test } from "vitest";
import { createGatewayClient, discard } from "../../../../adapters/discord/listen/client.ts";
import { createGatewayInfo } from "../../../../adapters/discord/listen/gateway-info.ts";
import { eventually } from "../../../support/eventually.ts";
import { listenUntilTestEnds } from "../../../support/listen.ts";
import { silent } from "../../../support/log.ts";

/** Takes connections and says nothing. */
async function startSilence(): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** Discord's REST, as far as it says where the gateway is. */
async function startRest(gatewayPort: number): Promise<string> {
  const start = { total: 1_000, remaining: 1_000, reset_after: 0, max_concurrency: 1 };
  const body = JSON.stringify({ url: `ws://127.0.0.1:${gatewayPort}`, shards: 1, session_start_limit: start });
  const server = createHttpServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(body);
  });
  return `${await listenUntilTestEnds(server)}/api`;
}

test("a connection that fails after its client was discarded does not end the process", async () => {
  const failures: unknown[] = [];
  const note = (error: unknown) => void failures.push(error);
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", note);
  onTestFinished(() => {
    process.off("uncaughtException", note);
    for (const other of others) process.on("uncaughtException", other);
  });
  const { port, sockets } = await startSilence();
  const token = "MTIz.abc.def";
  const gateway = createGatewayInfo({ token, apiUrl: await startRest(port) });
  const shard = { id: 0, count: 1 };
  const closeCode = () => CloseCodes.Normal;
  const identify = async () => {};
  const client = createGatewayClient({ gateway, shard, identify, hasContent: true, closeCode, log: silent });
  client.login(token).catch(() => {});
  await eventually(() => sockets.length).toBe(1);
  await discard(client);
  const [socket] = sockets;
  socket?.resetAndDestroy();
  // What comes over another connection made later comes later than the reset.
  await once(connect(port, "127.0.0.1"), "connect");
  await eventually(() => sockets.length).toBe(2);
  for (const one of sockets) one.destroy();
  expect(failures).toEqual([]);
});
