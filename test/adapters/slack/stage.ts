import { onTestFinished } from "vitest";
import { createSlackAdapter, type SlackAdapter } from "../../../adapters/slack/adapter.ts";
import type { SlackAdapterOptions } from "../../../adapters/slack/options.ts";
import type { Person } from "../../../lab/slack-sim/people.ts";
import type { SimulatorOptions } from "../../../lab/slack-sim/simulator.ts";
import type { Channel } from "../../../lab/slack-sim/world.ts";
import { silent } from "../../../lab/support/log.ts";
import { startHttpServer } from "../../../src/http/server.ts";
import type { Accept, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import type { Draft } from "../../../src/port/sink.ts";
import type { TransportName } from "../../support/bolt-app.ts";
import { type Slack, startSlack } from "../../support/slack.ts";

export const TRANSPORTS: readonly TransportName[] = ["Socket Mode", "HTTP"];

export interface StageOptions extends Partial<Omit<SlackAdapterOptions, "transport">> {
  slack?: Slack;
  simulator?: SimulatorOptions;
  transport?: TransportName;
  accept?: Accept;
  /** If false, the adapter only writes. */
  listens?: boolean;
}

export interface Stage {
  slack: Slack;
  adapter: SlackAdapter;
  general: Channel;
  ada: Person;
  bob: Person;
  events: InboundEvent[];
  reasons: string[];
  /** The address of the HTTP server. Set only with HTTP. */
  url: string;
  event(index: number): Promise<InboundEvent>;
  message(index: number): Promise<MessageEvent>;
  /** Resolves when the bot has received all earlier events. */
  heard(): Promise<void>;
}

/** A workspace with two people, a channel and the adapter. The adapter stops after the test. */
export async function startStage(options: StageOptions = {}): Promise<Stage> {
  const { slack = await startSlack(options.simulator), ...rest } = options;
  const ada = slack.user({ name: "Ada" });
  const bob = slack.user({ name: "Bob" });
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const started = await startAdapter(slack, rest);
  return { slack, general, ada, bob, ...started };
}

/** One process of the bot. Resolves when it is connected to Slack. */
export async function startAdapter(
  slack: Slack,
  { accept = async () => {}, listens = true, transport = "Socket Mode", ...options }: StageOptions = {},
): Promise<Omit<Stage, "slack" | "general" | "ada" | "bob">> {
  const events: InboundEvent[] = [];
  const reasons: string[] = [];
  const { botToken, appToken, signingSecret } = slack;
  const adapter = createSlackAdapter({
    transport: transport === "HTTP" ? { mode: "http", signingSecret } : { mode: "socket", appToken },
    installed: { botToken },
    markKey: "key",
    apiUrl: slack.apiUrl,
    commands: [{ name: "help", description: "Show what I can do." }],
    listModels: async () => ["sandbox-chat"],
    findTurn: async () => undefined,
    log: silent,
    onFatal: (reason) => reasons.push(reason),
    now: slack.now,
    ...options,
  });
  onTestFinished(async () => {
    // Slack also sends the bot's last messages to the bot. A bot that shuts down before it acknowledges these
    // messages would seem to refuse them.
    const isTold = () => slack.deliveries.every(({ attempts }) => attempts.length > 0);
    if (adapter.isConnected()) await slack.until(isTold, "the last deliveries", 3_000).catch(() => {});
    await adapter.close();
  });
  const url = adapter.app === undefined ? "" : await serve(slack, adapter.app);
  if (listens) {
    await adapter.listen(async (event) => {
      await accept(event);
      events.push(event);
    });
  }
  if (listens && adapter.app === undefined) {
    await slack.until(() => slack.connections() >= 2, "the adapter's sockets");
  }

  const event = (index: number) => slack.until(() => events[index], `event ${index}`);
  return {
    adapter,
    events,
    reasons,
    url,
    event,
    async message(index) {
      const found = await event(index);
      if (found.kind !== "message") throw new Error(`Event ${index} is no message but ${found.kind}.`);
      return found;
    },
    heard: () => slack.acknowledged(),
  };
}

async function serve(slack: Slack, app: NonNullable<SlackAdapter["app"]>): Promise<string> {
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    log: silent,
    health: {},
    metrics: { render: async () => ({ contentType: "text/plain", body: "" }) },
    mounts: [app],
    closeTimeoutMs: 500,
  });
  onTestFinished(() => server.close());
  slack.deliverTo(`${server.url}/slack/events`);
  return server.url;
}

export function draft(markdown: string, more: Partial<Draft> = {}): Draft {
  return { markdown, buttons: [], streaming: false, ...more };
}

export const signal = new AbortController().signal;
