import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { WIRE_FAULTS } from "../../lab/gateway/faults.ts";
import { silent } from "../../lab/support/log.ts";
import { noLinks } from "../../lab/support/picture-turn.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../../src/gateway/client.ts";
import type { References } from "../../src/media/reference.ts";
import type { OutboundFile } from "../../src/port/sink.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { listenUntilTestEnds } from "./listen.ts";

export interface ImageCall {
  path: string;
  headers: IncomingHttpHeaders;
  body: {
    contents: Array<{ parts: Array<{ text?: string; fileData?: { mimeType: string; fileUri: string } }> }>;
    generationConfig?: { imageConfig?: { aspectRatio?: string; imageSize?: string } };
  };
}

/** Delays a request, or responds to it instead of the sandbox. */
export type Meet = (call: ImageCall, index: number) => Promise<Met | undefined | void>;
type Met = { status: number; body: unknown; headers?: Record<string, string> };

export interface ImageGatewayOptions extends Partial<GatewayOptions> {
  meet?: Meet;
  /** Further origins from which the sandbox fetches files. */
  fileOrigins?: readonly string[];
}

/**
 * The sandbox gateway behind a door that records requests, and a server from which the gateway fetches a channel's
 * files. Everything ends with the test.
 */
export async function startImageGateway(
  findFile: (id: string) => OutboundFile | undefined = () => undefined,
  options: ImageGatewayOptions = {},
) {
  const { meet = async () => {}, fileOrigins = [], ...given } = options;
  const files = await listen(async (url) => {
    const file = findFile(decodeURIComponent(url.slice(1)));
    return file === undefined ? { status: 404, body: "" } : { status: 200, body: file.bytes };
  });
  const trustedFileOrigins = [files, ...fileOrigins];
  const speed = { tokensPerSecond: Infinity, requestsPerMinute: Infinity };
  const served = { ...speed, trustedFileOrigins, faults: WIRE_FAULTS };
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, ...served });
  onTestFinished(() => sandbox.close());

  const calls: ImageCall[] = [];
  const url = await listen(async (path, method, headers, text) => {
    if (path.startsWith("/v1beta/")) {
      const call: ImageCall = { path, headers, body: JSON.parse(text) as ImageCall["body"] };
      const met = await meet(call, calls.push(call) - 1);
      if (met) return { ...met, body: JSON.stringify(met.body) };
    }
    const { host: _, connection: __, "content-length": ___, "transfer-encoding": ____, ...passed } = headers;
    const init = { method, headers: passed as Record<string, string>, ...(text !== "" && { body: text }) };
    const answer = await fetch(sandbox.url + path, init);
    const body = new Uint8Array(await answer.arrayBuffer());
    return { status: answer.status, body, headers: pickHeaders(answer.headers) };
  });
  const gateway: Gateway = createGateway({
    baseUrl: url,
    apiKey: "sk-sandbox-all",
    log: silent,
    limits: { attempts: 1 },
    ...given,
  });
  onTestFinished(() => gateway.close());

  const references: References = {
    ...noLinks,
    prepare: async (refs) => ({
      ok: true,
      parts: refs.map(({ id }) => ({ mimeType: "image/png", fileUri: `${files}/${encodeURIComponent(id)}` })),
    }),
  };
  return { gateway, references, calls, origin: files };
}

function pickHeaders(headers: Headers): Record<string, string> {
  const names = ["content-type", "retry-after"];
  return Object.fromEntries(names.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) ?? ""]] : [])));
}

type Answer = { status: number; body: string | Uint8Array; headers?: Record<string, string> };

async function listen(
  handle: (url: string, method: string, headers: IncomingHttpHeaders, text: string) => Promise<Answer>,
): Promise<string> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Uint8Array>);
    const text = Buffer.concat(chunks).toString("utf8");
    try {
      const { status, body, headers } = await handle(request.url ?? "", request.method ?? "", request.headers, text);
      response.writeHead(status, headers ?? { "content-type": "application/json" }).end(body);
    } catch {
      // If a connection breaks behind the door, it also breaks in front of it.
      response.destroy();
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  return listenUntilTestEnds(server);
}
