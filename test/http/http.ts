/** Shared by the HTTP tests: a server that ends with the test, and requests that no client normalizes. */
import { once } from "node:events";
import { connect } from "node:net";
import { onTestFinished } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";

export async function startServer(options: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    log: silent,
    health: {},
    metrics: createMetrics(),
    mounts: [],
    closeTimeoutMs: 200,
    ...options,
  });
  onTestFinished(() => server.close());
  return server;
}

/** Resolves to the whole response. */
export async function send(url: string, target: string, method = "GET", host = "here.example"): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}
