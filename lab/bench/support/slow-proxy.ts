import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

/** Headers of the connection, not of the response. */
const OWN_HEADERS = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"]);

export interface SlowProxy {
  /** Clients use this origin instead of the target's. */
  origin: string;
  close(): Promise<void>;
}

/**
 * Simulates a network delay: half of each round trip passes before the proxy forwards the call, and half before it
 * forwards the response.
 */
export async function startSlowProxy(target: string, roundTripMs: () => number): Promise<SlowProxy> {
  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const halfMs = roundTripMs() / 2;
    const [body] = await Promise.all([buffer(request), sleep(halfMs)]);
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = request.headers;
    const answer = await fetch(new URL(request.url ?? "/", target), {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    });
    const text = await answer.text();
    await sleep(halfMs);
    const kept = [...answer.headers].filter(([name]) => !OWN_HEADERS.has(name));
    response.writeHead(answer.status, { "content-type": "application/json", ...Object.fromEntries(kept) });
    response.end(text);
  }

  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
