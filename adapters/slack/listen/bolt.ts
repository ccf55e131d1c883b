import { App, type Receiver } from "@slack/bolt";
import type { Logger } from "pino";
import { LoggableError } from "../../../src/port/errors.ts";
import { refusalOf } from "../api/auth-errors.ts";
import type { Body } from "../api/wire.ts";
import { readText, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { toBoltLogger } from "./bolt-log.ts";
import type { Reaction } from "./surfaces.ts";

/** Slack waits three seconds for an acknowledgement; what takes longer shall come again. */
const TAKE_MS = 2_500;
/** For the clients that Bolt makes for listeners; ours use none of them. */
const CLIENT_OPTIONS = { retryConfig: { retries: 0 }, timeout: 10_000, rejectRateLimitedCalls: true };
const INTERACTIONS = new Set(["block_actions", "shortcut", "message_action", "view_submission", "view_closed"]);

/** Who hears what Slack says. What was rejected is not acknowledged. */
export interface Hearing {
  onEvent(event: Body, body: Body): Promise<Reaction>;
  onInteraction(body: Body): Promise<Reaction>;
}

export interface BoltOptions {
  receiver: Receiver;
  /** Undefined where the bot is not installed. */
  workspaceOf(body: Body): Promise<Workspace | undefined>;
  hearing: Hearing;
  log: Logger;
}

/**
 * Makes a Bolt app that acknowledges what was taken over, and nothing else. Bolt itself acknowledges an event before it
 * calls a listener, so events are heard where both transports hand them to the app. Interactions, whose
 * acknowledgement Bolt leaves to the listener, go through it.
 */
export function createBolt({ receiver, workspaceOf, hearing, log }: BoltOptions): App {
  const app = new App({
    receiver,
    logger: toBoltLogger(log),
    clientOptions: { ...CLIENT_OPTIONS },
    convoStore: false,
    deferInitialization: true,
    async authorize(_source, body) {
      const workspace = await workspaceOf(toBody(body));
      if (workspace === undefined) throw new Error("The bot is not installed in this workspace.");
      const { teamId, token: botToken, botId, botUserId } = workspace;
      return { teamId, botToken, botId, botUserId };
    },
  });
  const dispatch = app.processEvent.bind(app);

  app.processEvent = async (received) => {
    const body = toBody(received.body);
    const event = toBody(body["event"]);
    if (isInteraction(body)) return dispatch(received);
    const isEvent = readText(event["type"]) !== undefined;
    if (!isEvent) log.warn({ type: body["type"] }, "Slack sent something that is no event.");
    const reaction = isEvent ? await inTime(hearing.onEvent(event, body)) : undefined;
    await received.ack();
    runLater(reaction);
  };

  app.use(async ({ body, ...rest }) => {
    const reaction = await inTime(hearing.onInteraction(toBody(body)));
    const { ack } = rest as { ack?: (response?: unknown) => Promise<void> };
    await ack?.(reaction.response);
    runLater(reaction);
  });

  function runLater(reaction: Reaction | undefined): void {
    reaction?.afterwards?.().catch((error: unknown) => {
      log.warn({ err: error, refusal: refusalOf(error) }, "What Slack asked for could not be finished.");
    });
  }

  return app;
}

function isInteraction(body: Body): boolean {
  return body["command"] !== undefined || INTERACTIONS.has(String(body["type"]));
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new LoggableError("It was not taken over in time.")), TAKE_MS);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
