import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { createLocalAdapter, type LocalAdapter } from "../../adapters/local/adapter.ts";
import type { LocalAdapterOptions } from "../../adapters/local/options.ts";
import type { DescribedPicture, FileRow, Row, SendBody } from "../../adapters/local/page/wire.ts";
import { silent } from "../../lab/support/log.ts";
import { startHttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import type { ImagineMenu } from "../../src/port/catalogue.ts";
import type { Accept, InboundEvent } from "../../src/port/events.ts";

export interface LocalPage {
  url: string;
  adapter: LocalAdapter;
  events: InboundEvent[];
  database: DatabaseSync;
  /** Posts JSON as the page does. */
  post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Response>;
  /** Resolves to the first rows for a page that has everything up to `since`. */
  rows: (since?: number) => Promise<Row[]>;
  upload: (name: string, bytes: Uint8Array) => Promise<FileRow>;
  /** Sends like the page. Rejects with the sentence in an error response. */
  send: (body: Partial<SendBody>) => Promise<number>;
  close: () => Promise<void>;
}

export interface LocalPageOptions extends Partial<LocalAdapterOptions> {
  accept?: Accept;
  /** If true, the adapter does not start to listen. */
  isSilent?: boolean;
  port?: number;
}

/** A form for images that knows some. */
export function fakeMenu(known: Record<string, DescribedPicture> = {}): ImagineMenu {
  return {
    ratios: ["1:1", "16:9", "9:16"],
    sizes: ["1K", "2K"],
    maxCount: 4,
    maxReferences: 3,
    listModels: async () => ["usual-image", "other-image"],
    describe: async (id) => known[id],
  };
}

/** The local adapter on a separate port, mounted as in the service. */
export async function startLocalPage(options: LocalPageOptions = {}): Promise<LocalPage> {
  const { accept, isSilent = false, port = 0, database = new DatabaseSync(":memory:"), ...rest } = options;
  const events: InboundEvent[] = [];
  const log = rest.log ?? silent;
  const adapter = createLocalAdapter({
    database,
    botName: "Palaver",
    browserKey: "b".repeat(32),
    log,
    allowedHosts: [],
    commands: [
      { name: "help", description: "What I can do" },
      { name: "imagine", description: "Draws a picture" },
      { name: "forget", description: "Forget what I know about you" },
    ],
    ...rest,
  });
  if (!isSilent) {
    await adapter.listen(async (event) => {
      await accept?.(event);
      events.push(event);
    });
  }
  const server = await startHttpServer({
    host: "127.0.0.1",
    port,
    log,
    health: {},
    metrics: createMetrics(),
    mounts: [adapter.app],
    closeTimeoutMs: 0,
  });
  const { url } = server;

  const post: LocalPage["post"] = (path, body, headers = {}) =>
    fetch(url + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: url, ...headers },
      body: JSON.stringify(body),
    });

  return {
    url,
    adapter,
    events,
    database,
    post,
    rows: (since = 0) => readRows(`${url}/local/events?since=${since}`),
    async upload(name, bytes) {
      const headers = { Origin: url, "X-File-Name": encodeURIComponent(name) };
      const response = await fetch(`${url}/local/files`, { method: "POST", headers, body: Buffer.from(bytes) });
      return (await readAnswer(response)) as FileRow;
    },
    async send(body) {
      const basics = { nonce: randomUUID(), chatId: "chat-1", text: "" };
      const answer = await readAnswer(
        await post("/local/messages", { ...basics, fileIds: [], isNewChat: true, ...body }),
      );
      return (answer as { id: number }).id;
    },
    async close() {
      await adapter.close();
      await server.close();
    },
  };
}

async function readAnswer(response: Response): Promise<unknown> {
  const answer = (await response.json()) as { error?: string };
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function readRows(url: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const { event, data } of openEvents(url)) {
    if (event === "row") rows.push(JSON.parse(data) as Row);
    if (event === "ready") break;
  }
  return rows;
}

/** A stream's events as they arrive. Leaving the loop closes the connection. */
export async function* openEvents(
  url: string,
  headers: Record<string, string> = {},
): AsyncGenerator<EventSourceMessage> {
  const leaving = new AbortController();
  const response = await fetch(url, { headers, signal: leaving.signal });
  const queue: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void queue.push(event) });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* queue.splice(0);
    }
  } finally {
    leaving.abort();
  }
}
