import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenUntilTestEnds } from "./listen.ts";

export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

export interface FileServer {
  origin: string;
  requests: IncomingMessage[];
}

/** A file server on this machine that responds by path. Every other path is 404. It ends with the test. */
export async function serveAnswers(answers: Readonly<Record<string, Answer>>): Promise<FileServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const answer = answers[new URL(request.url ?? "/", "http://server").pathname];
    if (answer === undefined) response.writeHead(404).end("nothing");
    else answer(response, request);
  });
  return { origin: await listenUntilTestEnds(server), requests };
}

/** Sends endless bytes, as fast as the client reads them. */
export function sendEndlessly(response: ServerResponse, headers: Record<string, string | number> = {}): void {
  response.writeHead(200, { "content-type": "image/png", ...headers });
  const chunk = Buffer.alloc(256 * 1024, 1);
  const push = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", push).on("error", () => {});
  push();
}

/** Sends one byte at a time, forever. */
export function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "image/png" });
  const timer = setInterval(() => response.write("x"), 5);
  response.on("close", () => clearInterval(timer));
}
