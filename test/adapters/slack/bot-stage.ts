import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import type { SlackAdapterOptions } from "../../../adapters/slack/options.ts";
import type { Dialect } from "../../../lab/slack-sim/dialect.ts";
import type { Channel, Message } from "../../../lab/slack-sim/world.ts";
import { openBotStores } from "../../../lab/support/bot-store.ts";
import { watchIdle } from "../../../lab/support/engine.ts";
import { fakeGateway, type Step } from "../../../lab/support/fake-gateway.ts";
import { silent } from "../../../lab/support/log.ts";
import { noLinks } from "../../../lab/support/picture-turn.ts";
import { createEngine } from "../../../src/app/engine.ts";
import type { Policy } from "../../../src/config/policy/policy-file.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createScheduler } from "../../../src/pacing/scheduler.ts";
import type { Tool } from "../../../src/tools/tool.ts";
import type { TransportName } from "../../support/bolt-app.ts";
import { type Slack, startSlack } from "../../support/slack.ts";
import { startAdapter } from "./stage.ts";

export interface BotOptions {
  slack?: Slack;
  database?: DatabaseSync;
  transport?: TransportName;
  scripts: Step[][];
  tools?: Tool[];
  outsideTools?(): readonly Tool[];
  policy?: () => Policy;
  installed?: SlackAdapterOptions["installed"];
}

export async function startBot({
  database = new DatabaseSync(":memory:"),
  transport,
  scripts,
  tools = [],
  ...options
}: BotOptions) {
  const slack = options.slack ?? (await startSlack());
  const ada = slack.user({ name: "Ada" });
  const bob = slack.user({ name: "Bob" });
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const { gateway, requests } = fakeGateway(...scripts);
  const scheduler = createScheduler({ now: () => performance.now() });
  const stores = openBotStores(database);
  const metrics = createMetrics();
  const engine = createEngine({
    botName: "Palaver",
    model: "fake",
    imageModel: undefined,
    systemPrompt: "Be kind.",
    policy: options.policy ?? (() => ({})),
    limits: {
      historyTtlMs: 86_400_000,
      historyMaxMessages: 60,
      historyMaxTokens: 16_000,
      contextMessages: 15,
      maxConcurrentTurns: 16,
      maxReferences: 8,
    },
    database,
    stores,
    gateway: { ...gateway, listModels: async () => ["fake", "another"] },
    toTools: () => tools,
    ...(options.outsideTools && { outside: { toolsOf: options.outsideTools } }),
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    scheduler,
    adapterOf: () => started.adapter,
    pseudonym: (_, userId) => userId,
    metrics,
    log: silent,
    retryMs: [1, 4],
  });
  const idle = watchIdle(engine.queue, engine.worker, stores);
  const started = await startAdapter(slack, {
    ...(transport && { transport }),
    ...(options.installed && { installed: options.installed }),
    accept: engine.accept,
    commands: engine.commands,
    readAbout: engine.readAbout,
    findTurn: engine.findTurn,
    isListening: engine.isListening,
    looking: engine.looking,
    namedGroups: engine.access.namedGroups,
  });
  onTestFinished(async () => {
    await engine.queue.close(0);
    scheduler.close();
  });
  /** Resolves to the bot's messages in a thread, when the bot has finished and has written `count` messages. */
  async function finished(channel: Channel, thread: Message, count = 1): Promise<string[]> {
    await slack.until(() => slack.texts(channel, thread).length >= count, `${count} answers`);
    await slack.acknowledged();
    await idle();
    return slack.texts(channel, thread);
  }
  const { queue, records, history } = engine;
  return { slack, ada, bob, general, requests, queue, records, history, metrics, idle, finished, ...started };
}

export const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `);

export const WAYS: ReadonlyArray<[TransportName, Dialect]> = [
  ["Socket Mode", "usual"],
  ["HTTP", "spare"],
];
