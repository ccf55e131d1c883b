import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import type { FileRoutes } from "./file-routes.ts";
import type { ResponseUrls } from "./response-urls.ts";
import type { SocketMode } from "./socket-mode.ts";
import type { Json } from "./world.ts";

export interface Routes {
  api(request: IncomingMessage, response: ServerResponse, body: Buffer, url: URL): Promise<void>;
  /** Serves Slack's other pages. Returns false for an unknown page. */
  page(url: URL, response: ServerResponse): boolean;
  files: FileRoutes;
  urls: ResponseUrls;
  socketMode: SocketMode;
}

export interface HttpServer {
  /** The origin under which the sender of the current request reached this server. */
  readonly origin: string;
  close(): Promise<void>;
}

/** Serves the API, files, response URLs and sockets on one loopback port; 0 means any free port. */
export async function startServer(routes: () => Routes, port: number): Promise<HttpServer> {
  const sockets = new Set<Socket>();
  const reached = new AsyncLocalStorage<string>();
  let origin = "";

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { api, page, files, urls } = routes();
    const url = new URL(`${origin}${request.url ?? "/"}`);
    const body = await buffer(request);
    const [, place = "", version = "", last = ""] = url.pathname.split("/");
    if (place === "api") return api(request, response, body, url);
    if (place === "upload") return files.upload(last, request, response, body);
    if (place === "files-pri") return files.download(version.split("-").slice(1).join("-"), request, response);
    if (place === "signin") return files.login(response);
    if (place === "response") {
      const { status, text } = urls.use(version, JSON.parse(body.toString() || "{}") as Json);
      response.writeHead(status).end(text);
      return;
    }
    if (!page(url, response)) response.writeHead(404).end("There is no such page in this Slack.");
  }

  const server = createServer((request, response) => {
    const { host } = request.headers;
    reached.run(host === undefined ? origin : `http://${host}`, route, request, response).catch((error: unknown) => {
      // A bug in the simulator must fail its caller, not crash the process.
      response.writeHead(500).end(`The simulator failed: ${error instanceof Error ? error.stack : String(error)}`);
    });
  });
  server.on("upgrade", (request, socket, head) => routes().socketMode.upgrade(request, socket, head));
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  origin = await listen(server, port);
  return {
    get origin() {
      return reached.getStore() ?? origin;
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function listen(server: Server, port: number): Promise<string> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
