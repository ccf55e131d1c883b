import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { App, HTTPReceiver, LogLevel, SocketModeReceiver } from "@slack/bolt";
import { onTestFinished } from "vitest";
import type { Slack } from "./slack.ts";

export type TransportName = "Socket Mode" | "HTTP";

/** Makes Bolt fail at once instead of retrying for half an hour. */
const CLIENT_OPTIONS = { retryConfig: { retries: 0 }, rejectRateLimitedCalls: true, timeout: 10_000 };

export interface BoltOptions {
  transport?: TransportName;
  /** How long Bolt waits before it reconnects, and how long it waits for a pong. */
  clientPingTimeout?: number;
  /** Called with all of Bolt's log lines. Nothing is printed. */
  log?: (line: string) => void;
}

/** Starts an unmodified Bolt app. Resolves when the app is connected to the simulator. The app stops after the test. */
export async function startBolt(
  slack: Slack,
  listen: (app: App) => void,
  { transport = "Socket Mode", log = () => {}, clientPingTimeout }: BoltOptions = {},
): Promise<App> {
  const logger = toLogger(log);
  const clientOptions = { ...CLIENT_OPTIONS, slackApiUrl: slack.apiUrl };
  const receiver =
    transport === "HTTP"
      ? new HTTPReceiver({ signingSecret: slack.signingSecret, logger })
      : new SocketModeReceiver({
          appToken: slack.appToken,
          clientPingTimeout,
          logger,
          installerOptions: { clientOptions: { ...clientOptions } },
        });
  const app = new App({
    token: slack.botToken,
    receiver,
    clientOptions,
    logger,
    deferInitialization: true,
    convoStore: false,
  });
  await app.init();
  listen(app);
  if (receiver instanceof HTTPReceiver) await serve(slack, receiver);
  else await connect(slack, app, receiver);
  return app;
}

async function serve(slack: Slack, receiver: HTTPReceiver): Promise<void> {
  const server = createServer((request, response) => receiver.requestListener(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  slack.deliverTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events`);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
}

async function connect(slack: Slack, app: App, receiver: SocketModeReceiver): Promise<void> {
  await app.start();
  await slack.until(() => slack.connections() > 0, "Bolt to connect");
  onTestFinished(() => receiver.client.disconnect());
}

function toLogger(log: (line: string) => void) {
  const write = (...parts: unknown[]) => log(parts.map(String).join(" "));
  return {
    debug: () => {},
    info: write,
    warn: write,
    error: write,
    setLevel: () => {},
    getLevel: () => LogLevel.INFO,
    setName: () => {},
  };
}
