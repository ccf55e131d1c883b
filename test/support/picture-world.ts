import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";
import { onTestFinished } from "vitest";
import { createPictureSources } from "../../src/app/picture-sources.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { openBotStores } from "./bot-store.ts";
import { startEngine } from "./engine.ts";
import { fakeGateway } from "./fake-gateway.ts";
import { type ImageCall, type Meet, startImageGateway } from "./image-gateway.ts";
import { silent } from "./log.ts";

/** The key of the bot, in which a leak would be seen. */
export const GATEWAY_KEY = "sk-sandbox-all";
export const KEY_HEADER = "x-vendor-api-key";

export type PictureEngine = ReturnType<typeof startEngine>;

/** All of the bot but its adapter: it stays when the bot starts again. */
export interface PictureWorld {
  /** The requests to the gateway. */
  calls: readonly ImageCall[];
  database: DatabaseSync;
  /** From here on decides what becomes of each request; its index counts from here. */
  meet(next: Meet): void;
  /** The chat model answers the next question itself, with this picture. */
  paint(bytes: Uint8Array): void;
  /** One run of the bot. Its adapter may be made after it. */
  start(adapterOf: () => Adapter): PictureEngine;
}

/** The sandbox gateway, and the relay that hands it what is private; the gateway also fetches from `fileOrigins`. */
export async function startPictureWorld(fileOrigins: readonly string[] = []): Promise<PictureWorld> {
  const database = new DatabaseSync(":memory:");
  let routes: Hono | undefined;
  const relayUrl = await serve(async (request) => routes?.fetch(request) ?? new Response(null, { status: 404 }));
  let meet: Meet = async () => {};
  let offset = 0;
  const { gateway: sandbox, calls } = await startImageGateway(undefined, {
    apiKey: GATEWAY_KEY,
    imageKeyHeader: KEY_HEADER,
    fileOrigins: [relayUrl, ...fileOrigins],
    meet: (call, index) => meet(call, index - offset),
  });
  let painted: string | undefined;
  const gateway: Gateway = {
    ...sandbox,
    streamChat(...asked) {
      if (painted === undefined) return sandbox.streamChat(...asked);
      const { gateway: painter } = fakeGateway([{ pictures: [painted] }]);
      painted = undefined;
      return painter.streamChat(...asked);
    },
  };

  return {
    calls,
    database,
    meet(next) {
      offset = calls.length;
      meet = next;
    },
    paint: (bytes) => void (painted = `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`),
    start(adapterOf) {
      const stores = openBotStores(database);
      const ownKey = "k".repeat(32);
      const place = { adapterOf, stores, ownKey, serviceUrl: () => relayUrl };
      const sources = createPictureSources({ config: readConfig({}), ...place, log: silent });
      routes = sources.routes;
      const models = { model: "sandbox-chat", imageModel: "sandbox-image" };
      const { references } = sources;
      return startEngine({ gateway, ...models, database, references, adapterOf });
    },
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
