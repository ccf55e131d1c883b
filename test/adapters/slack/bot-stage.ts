import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import type { SlackAdapterOptions } from "../../../adapters/slack/options.ts";
import type { Dialect } from "../../../lab/slack-sim/dialect.ts";
import type { SimulatorOptions } from "../../../lab/slack-sim/simulator.ts";
import type { Channel, Message } from "../../../lab/slack-sim/world.ts";
import { type EngineOptions, startEngine } from "../../../lab/support/engine.ts";
import { fakeGateway, type Step } from "../../../lab/support/fake-gateway.ts";
import { noLinks } from "../../../lab/support/picture-turn.ts";
import type { TransportName } from "../../support/bolt-app.ts";
import { type Slack, startSlack } from "../../support/slack.ts";
import { startAdapter } from "./stage.ts";

export interface BotOptions extends Pick<EngineOptions, "database" | "tools" | "outsideTools" | "policy" | "isPaced"> {
  /** The Slack of another process. */
  slack?: Slack;
  simulator?: SimulatorOptions;
  transport?: TransportName;
  scripts: Step[][];
  installed?: SlackAdapterOptions["installed"];
}

/** Accepts the posts of a bot that does not keep Slack's pace. */
const BURSTY = { limits: { postBurst: 100 } };

export async function startBot({
  database = new DatabaseSync(":memory:"),
  transport,
  scripts,
  installed,
  simulator,
  ...options
}: BotOptions) {
  const slack = options.slack ?? (await startSlack({ ...(!options.isPaced && BURSTY), ...simulator }));
  const ada = slack.user({ name: "Ada" });
  const bob = slack.user({ name: "Bob" });
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const { gateway, requests } = fakeGateway(...scripts);
  const engine = startEngine({
    ...options,
    database,
    gateway: { ...gateway, listModels: async () => ["fake", "another"] },
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    adapterOf: () => started.adapter,
    pseudonym: (_, userId) => userId,
  });
  const { accept, commands, readAbout, findTurn, isListening, looking, namedGroups, idle } = engine;
  const started = await startAdapter(slack, {
    ...(transport && { transport }),
    ...(installed && { installed }),
    accept,
    commands,
    readAbout,
    findTurn,
    isListening,
    looking,
    namedGroups,
  });
  onTestFinished(() => engine.queue.close(0));
  /** Resolves to the bot's messages in a thread, when the bot has finished and has written `count` messages. */
  async function finished(channel: Channel, thread: Message, count = 1): Promise<string[]> {
    await slack.until(() => slack.texts(channel, thread).length >= count, `${count} answers`);
    await slack.acknowledged();
    await idle();
    return slack.texts(channel, thread);
  }
  const { queue, records, history, metrics } = engine;
  return { slack, ada, bob, general, requests, queue, records, history, metrics, idle, finished, ...started };
}

export const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `);

export const WAYS: ReadonlyArray<[TransportName, Dialect]> = [
  ["Socket Mode", "usual"],
  ["HTTP", "spare"],
];
