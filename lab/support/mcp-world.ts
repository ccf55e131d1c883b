import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createAdaptorServer } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { McpServerConfig, McpTransport } from "../../src/config/mcp-servers.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import type { Step } from "./fake-gateway.ts";
import { silent } from "./log.ts";

const REFERENCE_SERVERS = {
  everything: import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"),
  filesystem: import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"),
  memory: import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"),
};

/** A server's configuration with default values. */
export function toMcpConfig(
  name: string,
  transport: McpTransport,
  more: Partial<McpServerConfig> = {},
): McpServerConfig {
  return {
    name,
    transport,
    allow: undefined,
    deny: [],
    channels: undefined,
    approve: "acting",
    timeoutMs: 20_000,
    ...more,
  };
}

/** A program that runs with this Node, for example a reference server from a package. */
export function program(path: string, args: readonly string[] = [], env: Record<string, string> = {}): McpTransport {
  return { type: "stdio", command: process.execPath, args: [path, ...args], env, cwd: undefined };
}

/** A program that runs `code` for each message. In `code`, `say` sends a message. */
export function speaker(code: string): McpTransport {
  const loop = `
    import { appendFileSync } from "node:fs";
    import { createInterface } from "node:readline";
    const say = (...messages) =>
      process.stdout.write(messages.map((message) => JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n").join(""));
    const initialized = ${JSON.stringify(INITIALIZED)};
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method } = JSON.parse(line);
      ${code}
    }`;
  return program("--input-type=module", ["-e", loop]);
}

export function referenceServer(name: keyof typeof REFERENCE_SERVERS): string {
  return fileURLToPath(REFERENCE_SERVERS[name]);
}

export function address(url: string, headers: Record<string, string> = {}): McpTransport {
  return { type: "http", url, headers, oauth: undefined };
}

/**
 * A server whose tool `buy` adds a mark. The server speaks the stateless protocol revision and earlier ones. If `guard`
 * returns a response, the server sends this response instead of handling the request.
 */
export async function startCountingServer(guard: (request: Request) => Response | undefined = () => undefined) {
  const marks: string[] = [];
  const more: string[] = [];
  const listening = new Set<ServerResponse>();
  let answer: (note: string) => Promise<string> = async () => "bought";
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "counter", version: "1.0.0" });
    const note = z.object({ note: z.string() });
    server.registerTool("buy", { description: "Buys something.", inputSchema: note }, async ({ note }) => {
      marks.push(note);
      return { content: [{ type: "text", text: await answer(note) }] };
    });
    const annotations = { readOnlyHint: true };
    server.registerTool("count", { description: "Counts what was bought.", annotations }, async () => {
      return { content: [{ type: "text", text: `${marks.length} bought` }] };
    });
    for (const name of more) server.registerTool(name, {}, async () => ({ content: [] }));
    return server;
  });
  const server = createAdaptorServer({
    fetch: (request) => guard(request) ?? handler.fetch(request),
    overrideGlobalObjects: false,
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers["mcp-method"] === "subscriptions/listen") listening.add(response);
  });
  const url = await listen(server);
  return {
    url: `${url}/mcp`,
    marks,
    /** Sets the result of `buy` and its delay. */
    answerWith: (next: typeof answer) => void (answer = next),
    /** Adds a tool without notifying clients. */
    offer: (name: string) => void more.push(name),
    /** Aborts the streams that notify clients of changes. */
    endListening() {
      for (const response of listening) response.destroy();
    },
    async close() {
      await handler.close();
      await end(server);
    },
  };
}

/**
 * A server that responds to each method with `answer`, even if that breaks the protocol. With `session`, it has one
 * session at a time.
 */
export async function startRawServer(
  answer: (method: string, params: unknown, response: ServerResponse) => unknown,
  session?: { id: string; status: number },
  capabilities: object = INITIALIZED.capabilities,
) {
  const server = createServer((request: IncomingMessage, response: ServerResponse) => void serve(request, response));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Closes each connection, so that callers never reuse one.
    response.setHeader("connection", "close");
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method, params } = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString()) as {
      id?: number;
      method: string;
      params?: unknown;
    };
    const isForgotten = session !== undefined && request.headers["mcp-session-id"] !== session.id;
    if (isForgotten && ["tools/call", "ping"].includes(method))
      return void response.writeHead(session.status).end("Session not found");
    if (id === undefined) return void response.writeHead(202).end();
    const result = method === "initialize" ? { ...INITIALIZED, capabilities } : await answer(method, params, response);
    if (result === undefined) return;
    const isUnknown = method === "server/discover";
    const reply = typeof result === "object" && result !== null && "error" in result ? result : { result };
    const body = isUnknown ? { error: { code: -32601, message: "Method not found" } } : reply;
    response.writeHead(200, { "content-type": "application/json", ...(session && { "mcp-session-id": session.id }) });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
  }

  const url = await listen(server);
  return { url: `${url}/mcp`, close: () => end(server) };
}

/**
 * A server of the second-to-last protocol revision. It responds on event streams, and each stream opens a session. With
 * `refusal`, it refuses each call with this status.
 */
export async function startStreamServer() {
  const streams = new Map<string, { stream: ServerResponse; isInitialized: boolean }>();
  const control: { refusal?: number } = {};
  const server = createServer((request: IncomingMessage, response: ServerResponse) => void serve(request, response));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path } = new URL(request.url ?? "", "http://localhost");
    if (request.method === "GET") {
      const own = `/sessions/${streams.size}`;
      streams.set(own, { stream: response, isInitialized: false });
      response.writeHead(200, { "content-type": "text/event-stream" });
      return void response.write(`retry: 1\nevent: endpoint\ndata: ${own}\n\n`);
    }
    const session = streams.get(path);
    const body = Buffer.concat(await Array.fromAsync(request)).toString();
    const { id, method } = JSON.parse(body) as { id?: number; method: string };
    if (session === undefined) return void response.writeHead(404).end();
    if (method === "tools/call" && control.refusal !== undefined) return void response.writeHead(control.refusal).end();
    response.writeHead(202).end();
    if (id === undefined) return;
    if (method === "initialize") session.isInitialized = true;
    const results: Record<string, object> = {
      initialize: INITIALIZED,
      "tools/list": { tools: [{ name: "buy", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "bought" }] },
    };
    const refused = { error: { code: -32_602, message: "Invalid request parameters" } };
    const answer = session.isInitialized ? { result: results[method] ?? {} } : refused;
    session.stream.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n\n`);
  }

  const url = await listen(server);
  return {
    url: `${url}/sse`,
    control,
    /** Number of streams that were opened. */
    sessions: () => streams.size,
    /** Closes the streams, but keeps their sessions. */
    drop() {
      for (const { stream } of streams.values()) stream.end();
    },
    close: () => end(server),
  };
}

export const INITIALIZED = {
  protocolVersion: "2025-06-18",
  capabilities: { tools: {} },
  serverInfo: { name: "raw", version: "1" },
};

async function listen(server: ReturnType<typeof createAdaptorServer>): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function end(server: ReturnType<typeof createAdaptorServer>): Promise<void> {
  if ("closeAllConnections" in server) server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** The reference server with all features, over HTTP. */
export async function startFarServer() {
  const free = createServer();
  const port = Number(new URL(await listen(free)).port);
  await end(free);
  const child = spawn(process.execPath, [referenceServer("everything"), "streamableHttp"], {
    env: { PATH: process.env["PATH"], PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const line of createInterface({ input: child.stderr })) if (line.includes("listening on port")) break;
  child.stderr.resume();
  return { url: `http://127.0.0.1:${port}/mcp`, close: () => void child.kill("SIGKILL") };
}

/**
 * Three reference servers: a program that remembers, a program that stores files, and one over HTTP. The model first
 * calls the one that remembers, then all three at once.
 */
export async function startReferenceServers(folder: string) {
  await writeFile(join(folder, "note.txt"), "buy milk");
  const far = await startFarServer();
  const memory = program(referenceServer("memory"), [], { MEMORY_FILE_PATH: join(folder, "memory.jsonl") });
  const servers = createMcpServers(
    [
      toMcpConfig("memory", memory),
      toMcpConfig("files", program(referenceServer("filesystem"), [folder])),
      toMcpConfig("far", address(far.url), { approve: "never" }),
    ],
    silent,
  );
  await servers.tried();
  const calls = (...given: [name: string, args: object][]): Step => ({
    tool_calls: given.map(([name, args], index) => {
      return { index, id: name, type: "function", function: { name, arguments: JSON.stringify(args) } };
    }),
  });
  const entities = [{ name: "Ada", entityType: "person", observations: ["likes tea"] }];
  return {
    servers,
    scripts: [
      ["Let me note that.", calls(["memory__create_entities", { entities }])],
      [
        calls(
          ["far__echo", { message: "hello" }],
          ["memory__search_nodes", { query: "tea" }],
          ["files__read_text_file", { path: join(folder, "note.txt") }],
        ),
      ],
      ["Noted."],
    ] satisfies Step[][],
    /** The results of the concurrent calls, in order. */
    results: ["Echo: hello", "likes tea", "buy milk"],
    async close() {
      await servers.close();
      far.close();
    },
  };
}
