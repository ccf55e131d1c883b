import { join } from "node:path";
import type { Hono } from "hono";
import { createConsoleAdapter } from "../adapters/console/index.ts";
import type { DirectChannelStore, LastSession, LastSessionStore } from "../adapters/discord/options.ts";
import type { LocalAdapter } from "../adapters/local/index.ts";
import { EXAMPLES } from "../adapters/local/options.ts";
import type { SeveralWorkspaces } from "../adapters/slack/install/several-workspaces.ts";
import type { Platforms, PlatformsOptions } from "./app/service.ts";
import type { SlackConfig } from "./config/config.ts";
import type { Adapter, AdapterOptions } from "./port/adapter.ts";
import type { Preview } from "./port/catalogue.ts";
import type { Setup } from "./port/setup.ts";
import type { Stores } from "./store/keyv.ts";
import { createSharedParts } from "./store/redis-shares.ts";

const SHARDS = "palaver:discord:shards";

/** Offered at the page while the sandbox gateway answers, which can fail on request. */
const FAILURE_EXAMPLE = { label: "See a failure", prompt: "sandbox fault: cut" };

/**
 * Makes the adapters that the configuration switches on, and no other file knows them. What is off is not loaded: the
 * libraries of the platforms are most of what a start costs. `openSetup`: the first run, which the page offers while no
 * platform is connected.
 */
export async function createPlatforms(options: PlatformsOptions, openSetup?: () => Promise<Setup>): Promise<Platforms> {
  const local = await createLocal(options, openSetup);
  const slack = await createSlack(options);
  const adapters = [createConsole(options), local, await createDiscord(options), slack?.adapter].filter(
    (adapter) => adapter !== undefined,
  );
  return {
    adapters: new Map(adapters.map((adapter) => [adapter.platform, adapter])),
    showGateway: (problem) => local?.showGateway(problem),
    mounts: [...(slack?.mounts ?? []), ...(local ? [local.app] : [])],
  };
}

function createConsole({ config: { consoleChat, dataDir }, onEnd }: PlatformsOptions): Adapter | undefined {
  if (!consoleChat) return undefined;
  const { stdin: input, stdout: output } = process;
  return createConsoleAdapter({ input, output, filesDir: join(dataDir, "files"), now: Date.now, onEnd });
}

async function createLocal(
  options: PlatformsOptions,
  openSetup: (() => Promise<Setup>) | undefined,
): Promise<LocalAdapter | undefined> {
  const { config, engine, database, browserKey, log } = options;
  const { localChat, botName, gateway } = config;
  if (!localChat.enabled) return undefined;
  const { createLocalAdapter } = await import("../adapters/local/index.ts");
  const examples = gateway.baseUrl === undefined ? [...EXAMPLES, FAILURE_EXAMPLE] : EXAMPLES;
  const own = { database, botName, browserKey, log, examples, isSandbox: gateway.baseUrl === undefined };
  const isFirstRun = config.slack === undefined && config.discord === undefined;
  const setup = isFirstRun ? await openSetup?.() : undefined;
  return createLocalAdapter({
    ...localChat,
    ...own,
    setup,
    adminPassword: config.admin?.password,
    imagine: gateway.imageModel !== undefined ? engine.imagineMenu : undefined,
    commands: engine.commands,
    readAbout: engine.readAbout,
    readPersona: engine.readPersona,
    isListening: engine.isListening,
    preview,
  });
}

/** Uses the adapters' own renderers, which are loaded when somebody asks. */
async function preview(markdown: string): Promise<Preview[]> {
  const { toSlackPreview } = await import("../adapters/slack/write/markdown.ts");
  const { toDiscordPreview } = await import("../adapters/discord/write/message-body.ts");
  return [
    { platform: "Slack", messages: toSlackPreview(markdown) },
    { platform: "Discord", messages: toDiscordPreview(markdown) },
  ];
}

async function createDiscord(options: PlatformsOptions): Promise<Adapter | undefined> {
  const { config, engine, stores, limits } = options;
  if (config.discord === undefined) return undefined;
  const { createDiscordAdapter } = await import("../adapters/discord/index.ts");
  return createDiscordAdapter({
    ...config.discord,
    ...toAdapterOptions(options),
    directChannels: toDirectChannelStore(stores),
    lastSession: toLastSessionStore(stores),
    shares: stores.shared && createSharedParts(stores.shared, SHARDS, stores.now, options.log),
    waits: limits?.waitsOf("discord"),
    processes: engine.queue.processes,
  });
}

function toAdapterOptions({ engine, log, onFatal }: PlatformsOptions): AdapterOptions {
  const { commands, listModels, readPersona, isListening, access, imagineMenu: imagine } = engine;
  const { namedGroups } = access;
  return { commands, listModels, readPersona, isListening, namedGroups, imagine, log, onFatal, now: Date.now };
}

async function createSlack(options: PlatformsOptions): Promise<{ adapter: Adapter; mounts: Hono[] } | undefined> {
  const { config, engine, limits, markKey } = options;
  const { slack } = config;
  if (slack === undefined) return undefined;
  const { apiUrl, allowedBots } = slack;
  const { createSlackAdapter } = await import("../adapters/slack/index.ts");
  const several = slack.oauth && (await createSlackWorkspaces(slack.oauth, options));
  const adapter = createSlackAdapter({
    ...toAdapterOptions(options),
    transport: slack,
    installed: several?.installed ?? { botToken: slack.botToken ?? "" },
    onUninstalled: several?.onUninstalled,
    apiUrl,
    markKey,
    allowedBots,
    readAbout: engine.readAbout,
    findTurn: engine.findTurn,
    looking: engine.looking,
    waits: limits?.waitsOf("slack"),
  });
  return { adapter, mounts: [adapter.app, several?.app].filter((app) => app !== undefined) };
}

async function createSlackWorkspaces(
  oauth: NonNullable<SlackConfig["oauth"]>,
  { config, engine, stores, log }: PlatformsOptions,
): Promise<SeveralWorkspaces> {
  const { createSeveralWorkspaces } = await import("../adapters/slack/install/several-workspaces.ts");
  return createSeveralWorkspaces({
    ...oauth,
    publicUrl: config.publicUrl ?? "",
    apiUrl: config.slack?.apiUrl,
    open: stores.open,
    async eraseWorkspace(teamId) {
      await engine.eraseConversations({ platform: "slack", workspaceId: teamId, prefix: `slack:${teamId}:` });
    },
    log,
    now: Date.now,
  });
}

function toLastSessionStore({ open }: Pick<Stores, "open">): LastSessionStore {
  const keyv = open("discord");
  return {
    read: () => keyv.get<LastSession>("session"),
    write: async (session) => void (await keyv.set("session", session)),
  };
}

/** Keeps the direct conversations that the Discord adapter knows. */
export function toDirectChannelStore({ open, inTurn }: Pick<Stores, "open" | "inTurn">): DirectChannelStore {
  const keyv = open("discord");
  return {
    read: async () => (await keyv.get<string[]>("directs")) ?? [],
    write: async (ids) => void (await keyv.set("directs", ids)),
    inTurn: (task) => inTurn("discord directs", task),
  };
}
