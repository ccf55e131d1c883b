import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { GatewayProblem } from "../models/health.ts";
import type { Adapter } from "../port/adapter.ts";
import type { ConfiguredPlatform, Host } from "../port/module.ts";
import type { Setup } from "../port/setup.ts";
import type { Stores } from "../store/keyv.ts";
import { createSharedParts } from "../store/redis-shares.ts";
import type { Engine } from "./engine.ts";

interface PlatformsOptions extends Pick<Host, "database" | "browserKey" | "markKey" | "onFatal" | "onEnd"> {
  config: Config;
  engine: Engine;
  database: DatabaseSync;
  stores: Pick<Stores, "open" | "inTurn" | "shared" | "now">;
  openSetup: (() => Promise<Setup>) | undefined;
  log: Logger;
}

export interface Platforms {
  adapters: ReadonlyMap<string, Adapter>;
  mounts: Hono[];
  /** Shows the operator a problem of the gateway. Undefined: the problem is solved. */
  showGateway(problem: GatewayProblem | undefined): void;
}

/** Creates the configured adapters. The local page and the terminal come first, because they need no network. */
export async function openPlatforms(options: PlatformsOptions): Promise<Platforms> {
  const host = await toHost(options);
  const isOwn = ({ module }: ConfiguredPlatform) => Number(module.surface !== undefined);
  const inOrder = options.config.platforms.toSorted((one, other) => isOwn(other) - isOwn(one));
  const open = await Promise.all(inOrder.map(({ module, config }) => module.create(config, host)));
  return {
    adapters: new Map(open.map(({ adapter }) => [adapter.platform, adapter])),
    mounts: open.flatMap(({ mounts = [] }) => mounts),
    showGateway(problem) {
      for (const platform of open) platform.showGateway?.(problem);
    },
  };
}

async function toHost({ config, engine, stores, openSetup, ...given }: PlatformsOptions): Promise<Host> {
  const { open, inTurn, shared } = stores;
  const isFirstRun = config.platforms.every(({ module }) => module.surface !== undefined);
  return {
    ...given,
    commands: engine.commands,
    listModels: engine.listModels,
    readPersona: engine.readPersona,
    scheduleForm: engine.scheduleForm,
    isListening: engine.isListening,
    namedGroups: engine.access.namedGroups,
    imagine: engine.imagineMenu,
    readAbout: engine.readAbout,
    findTurn: engine.findTurn,
    looking: engine.looking,
    eraseConversations: engine.eraseConversations,
    processes: engine.queue.processes,
    open,
    inTurn,
    shareParts: shared && ((name) => createSharedParts(shared, name, stores.now, given.log)),
    botName: config.botName,
    dataDir: config.dataDir,
    allowedHosts: config.allowedHosts,
    adminPassword: config.admin?.password,
    canDraw: config.gateway.imageModel !== undefined,
    isSandbox: config.gateway.baseUrl === undefined,
    setup: isFirstRun ? await openSetup?.() : undefined,
    preview: (markdown) => Promise.all(config.modules.flatMap(({ preview }) => preview?.(markdown) ?? [])),
    now: Date.now,
  };
}
