import { once } from "node:events";
import { connect } from "node:net";
import { CHUNK_FRAME } from "./sse-load.ts";

/** Reads a stream to its end. Calls `onChunks` with the number of new chunks. */
export type ReadStream = (onChunks: (count: number) => void) => Promise<void>;

/** Creates a client. Loads only that client's modules. */
type CreateReader = (url: string) => Promise<ReadStream>;

const MESSAGES = [{ role: "user" as const, content: "Tell me a long story." }];
const REQUEST = { model: "bench-model", messages: MESSAGES };
const API_KEY = "sk-bench";
const HEADERS = { "content-type": "application/json", authorization: `Bearer ${API_KEY}` };

/** The baseline: reads the bytes and ignores them. */
async function createBareReader(url: string): Promise<ReadStream> {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ ...REQUEST, stream: true });
  const lines = [
    "POST /v1/chat/completions HTTP/1.1",
    `host: ${hostname}:${port}`,
    "connection: close",
    ...Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
  ];
  return async (onChunks) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.on("data", ({ length }: Buffer) => onChunks(length / CHUNK_FRAME.length));
    socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
    await once(socket, "end");
  };
}

async function createGatewayReader(url: string): Promise<ReadStream> {
  const [{ createGateway }, { createLogger }] = await Promise.all([
    import("../../../src/gateway/client.ts"),
    import("../../../src/log/log.ts"),
  ]);
  const log = createLogger({ level: "info", secrets: [API_KEY], tokens: [], destination: { write() {} } });
  const gateway = createGateway({ baseUrl: url, apiKey: API_KEY, log });
  return (onChunks) => gateway.streamChat(REQUEST, new AbortController().signal, { onChunk: () => onChunks(1) });
}

async function createFetchReader(url: string): Promise<ReadStream> {
  const { createParser } = await import("eventsource-parser");
  return async (onChunks) => {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ ...REQUEST, stream: true }),
    });
    const parser = createParser({
      onEvent({ data }) {
        if (data === "[DONE]") return;
        JSON.parse(data);
        onChunks(1);
      },
    });
    const utf8 = new TextDecoder();
    for await (const bytes of answer.body ?? []) parser.feed(utf8.decode(bytes, { stream: true }));
  };
}

async function createOpenAiReader(url: string): Promise<ReadStream> {
  const { OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: API_KEY, maxRetries: 0 });
  return async (onChunks) => {
    const stream = await client.chat.completions.create({ ...REQUEST, stream: true });
    for await (const _ of stream) onChunks(1);
  };
}

/** The clients by their names in the table. The table compares the others with the first client. */
export const READERS: ReadonlyMap<string, CreateReader> = new Map([
  ["bare socket, nothing parsed", createBareReader],
  ["Palaver's gateway client", createGatewayReader],
  ["fetch, eventsource-parser, JSON.parse", createFetchReader],
  ["openai SDK", createOpenAiReader],
]);
