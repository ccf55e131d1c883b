import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";
import { onTestFinished } from "vitest";
import { openBotStores } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { fakeGateway, type Step } from "../../lab/support/fake-gateway.ts";
import { silent } from "../../lab/support/log.ts";
import { createPictureSources } from "../../src/app/picture-sources.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { createSearchMessages } from "../../src/search/search.ts";
import { toSearchTool } from "../../src/tools/search-messages.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { readConfig } from "./config.ts";
import { type ImageCall, type Meet, startImageGateway } from "./image-gateway.ts";

/** The bot's key. Tests check that it does not leak. */
export const GATEWAY_KEY = "sk-sandbox-all";
export const KEY_HEADER = "x-vendor-api-key";

export interface WorldOptions {
  /** The bot's tools, in addition to those for images and the search. */
  tools?: readonly Tool[];
}

/** All of the bot except its adapter. It outlives a restart of the bot. */
export interface World {
  calls: readonly ImageCall[];
  asked: readonly ChatRequest[];
  database: DatabaseSync;
  /** From now on, decides how each request for an image ends. Its index counts from here. */
  meet(next: Meet): void;
  /** The chat model's answers to the next requests. After these, the sandbox answers again. */
  script(...answers: Step[][]): void;
  /** Starts the bot. Its adapter can be created later. */
  start(adapterOf: () => Adapter): ReturnType<typeof startEngine>;
  /** Runs everything that is due until this time, in Unix milliseconds. */
  fireAt(at: number): Promise<void>;
}

/** The sandbox gateway, and the relay that gives it private files. The gateway also fetches from `fileOrigins`. */
export async function startWorld({ tools = [] }: WorldOptions, fileOrigins: readonly string[] = []): Promise<World> {
  const database = new DatabaseSync(":memory:");
  let routes: Hono | undefined;
  let engine: ReturnType<typeof startEngine> | undefined;
  const relayUrl = await serve(async (request) => routes?.fetch(request) ?? new Response(null, { status: 404 }));
  let meet: Meet = async () => {};
  let offset = 0;
  const { gateway: sandbox, calls } = await startImageGateway(undefined, {
    apiKey: GATEWAY_KEY,
    imageKeyHeader: KEY_HEADER,
    fileOrigins: [relayUrl, ...fileOrigins],
    meet: (call, index) => meet(call, index - offset),
  });
  const asked: ChatRequest[] = [];
  const scripts: Step[][] = [];
  const gateway: Gateway = {
    ...sandbox,
    streamChat(request, ...rest) {
      asked.push(structuredClone(request));
      const script = scripts.shift();
      const answers = script === undefined ? sandbox : fakeGateway(script).gateway;
      return answers.streamChat(request, ...rest);
    },
  };

  return {
    calls,
    asked,
    database,
    meet(next) {
      offset = calls.length;
      meet = next;
    },
    script: (...answers) => void scripts.push(...answers),
    start(adapterOf) {
      const stores = openBotStores(database);
      const ownKey = "k".repeat(32);
      const place = { adapterOf, stores, ownKey, serviceUrl: () => relayUrl };
      const sources = createPictureSources({ config: readConfig({}), ...place, log: silent });
      routes = sources.routes;
      const models = { model: "sandbox-chat", imageModel: "sandbox-image" };
      const { references } = sources;
      const search = toSearchTool(createSearchMessages({ adapterOf }));
      engine = startEngine({ gateway, ...models, database, tools: [...tools, search], references, adapterOf });
      return engine;
    },
    fireAt: async (at) => engine?.fireAt(at),
  };
}

async function serve(fetch: (request: Request) => Promise<Response>): Promise<string> {
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
