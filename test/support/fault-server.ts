import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { OnEnd } from "./listen.ts";

export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** Undefined if there was no body or if it was a form. */
  json: unknown;
  form?: FormData;
  /** Resolves when the connection of the request is closed. */
  closed: Promise<void>;
}

/** Handles one request. With `response.socket`, a response can violate HTTP. */
export type Answer = (response: ServerResponse, received: Received) => unknown;

export interface FaultServer {
  url: string;
  received: Received[];
  /** The number of accepted connections. */
  connections(): number;
}

/**
 * A gateway that misbehaves on request, over a real socket. The n-th request gets the n-th response, and all further
 * requests get the last one. It ends with the test.
 */
export function startFaultServer(...answers: Answer[]): Promise<FaultServer> {
  return openFaultServer(onTestFinished, answers);
}

/** Does the same until `onEnd` runs. */
export async function openFaultServer(onEnd: OnEnd, answers: Answer[]): Promise<FaultServer> {
  const received: Received[] = [];
  const sockets = new Map<Socket, Promise<void>>();
  let connections = 0;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = sockets.get(request.socket) ?? Promise.resolve();
    const body = await buffer(request);
    const { method = "", url: path = "", headers } = request;
    const type = headers["content-type"] ?? "";
    const one: Received = { method, path, headers, json: undefined, closed };
    if (type.startsWith("multipart/")) {
      one.form = await new Response(body, { headers: { "content-type": type } }).formData();
    } else if (body.length > 0) one.json = JSON.parse(body.toString("utf8"));
    received.push(one);
    await answers[Math.min(received.length, answers.length) - 1]?.(response, one);
  }

  const server = createServer((request, response) => void respond(request, response));
  server.on("connection", (socket) => {
    connections += 1;
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    sockets.set(socket, closed);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onEnd(async () => {
    for (const socket of sockets.keys()) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received, connections: () => connections };
}

export interface ChunkFields {
  delta?: Record<string, unknown>;
  finish?: string | null;
  index?: number;
}

/** One chunk as the interface shows it. */
export function chunk({ delta = {}, finish = null, index = 0 }: ChunkFields = {}): Record<string, unknown> {
  return {
    id: "chatcmpl-7",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "answering-model",
    choices: [{ index, delta, finish_reason: finish }],
  };
}

export function event(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

export const ROLE = event(chunk({ delta: { role: "assistant", content: "" } }));
export const FINISH = event(chunk({ finish: "stop" }));
export const DONE = event("[DONE]");

export function words(text: string): string {
  return event(chunk({ delta: { content: text } }));
}

/** A stream in the interface's order: role, text, finish, done. */
export function stream(...texts: string[]): string {
  return [ROLE, ...texts.map(words), FINISH, DONE].join("");
}

/** Sends these bytes as an event stream and ends it. */
export function events(...parts: Array<string | Buffer>): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const part of parts) response.write(part);
    response.end();
  };
}

/** Sends these bytes as an event stream and leaves it open. */
export function hanging(...parts: Array<string | Buffer>): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    for (const part of parts) response.write(part);
  };
}

/** Sends these bytes as an event stream, then aborts the connection. */
export function cut(...parts: string[]): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    // Without the end of the chunked body, the client notices that something is missing.
    response.write(parts.join(""), () => response.socket?.end());
  };
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
}

export function body(status: number, contentType: string, text: string): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": contentType });
    response.end(text);
  };
}

export function refusal(status: number, message: string, headers: Record<string, string> = {}): Answer {
  const error = { type: "server_error", code: "some_code", message, param: null };
  return json(status, { error }, headers);
}

export const good = events(stream("Hello"));

/** Closes the connection without a response. */
export const drop: Answer = (response) => response.socket?.destroy();

export const rateLimit = (headers: Record<string, string> = {}): Answer =>
  json(
    429,
    {
      error: {
        type: "rate_limit_error",
        code: "rate_limit_exceeded",
        message: "rate limit exceeded for model m",
        param: null,
      },
    },
    headers,
  );
