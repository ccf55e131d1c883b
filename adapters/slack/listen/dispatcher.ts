import { App, type Logger as BoltLogger, LogLevel, type Receiver } from "@slack/bolt";
import type { Logger } from "pino";
import { waitWithin } from "../../../src/concurrency/deadlines.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { codeOf } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import type { Delivery } from "./delivery.ts";
import type { Listener } from "./listener.ts";

/** Slack waits three seconds for an acknowledgement; an event that takes longer is left to be delivered again. */
const TAKE_MS = 2_500;
const TOO_LATE = "It was not accepted in time.";
const FIND_MS = 2_000;
/** For Bolt's one client, which has no token: our calls go through `SlackApi`. */
const CLIENT_OPTIONS = { retryConfig: { retries: 0 }, timeout: 10_000, rejectRateLimitedCalls: true };
const MESSAGES = new Set(["message", "app_mention"]);
const INTERACTIONS = new Set(["block_actions", "shortcut", "message_action", "view_submission", "view_closed"]);
const NOT_KEPT = "I could not store that, because my memory is out of reach. Try again in a minute.";

/** The result of handling an event or an interaction. */
export interface HandlerResult {
  /** Accepted by the core, in this order, before Slack hears anything. */
  events: readonly InboundEvent[];
  /** Goes with the acknowledgement: the answer to a command, the `response_action` of a form. */
  response?: Body | string;
  /** Begun once Slack has its acknowledgement. A rejection is logged. */
  afterwards?(): Promise<void>;
}

export const NOTHING: HandlerResult = { events: [] };

/** Handles commands, buttons, forms, shortcuts, the home tab and the assistant's pane. */
export interface Interactions {
  /** A command, button, form or shortcut: Slack waits three seconds for it and never sends it again. */
  onInteraction(body: Body, workspace: Workspace): Promise<HandlerResult>;
  /**
   * An event that is not about a message: `app_home_opened`, `agent_session_stopped`, `tokens_revoked` and the like.
   * `workspace` is undefined where the bot is not installed any more. Slack repeats an event that was rejected.
   */
  onEvent(event: Body, body: Body, workspace: Workspace | undefined): Promise<HandlerResult>;
  /** Draws somebody's home again, because its content may have changed. Best effort: never rejects. */
  redrawHome(where: { teamId: string; userId: string; channelId: string }): Promise<void>;
}

export interface DispatcherDeps {
  workspaces: Workspaces;
  /** Undefined while nothing is taken. */
  delivery(): Delivery | undefined;
  listener: Listener;
  interactions: Pick<Interactions, "onInteraction" | "onEvent">;
  /** Tells something to the person behind an event alone. */
  tell(event: InboundEvent, workspace: Workspace, words: string): Promise<void>;
  log: Logger;
}

/** Hands each delivery of Slack's to its handler, and the resulting events to the core. A rejected one is not acknowledged. */
export interface Dispatcher {
  onEvent(event: Body, body: Body): Promise<HandlerResult>;
  onInteraction(body: Body): Promise<HandlerResult>;
  /** The workspace in which the bot was told something; undefined where it is not installed. */
  workspaceOf(body: Body): Promise<Workspace | undefined>;
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { workspaces, delivery, listener, interactions, tell, log } = deps;
  const warnedTeams = new Set<string>();

  async function workspaceOf(body: Body): Promise<Workspace | undefined> {
    const signal = AbortSignal.timeout(FIND_MS);
    for (const teamId of teamsOf(body)) {
      const found = await workspaces.find(teamId, signal);
      if (found !== undefined) return found;
    }
    // Somebody of another organisation presses a button from a workspace of their own. An event of Slack names the
    // installations it is for; one that names none can only be for the only one there is.
    return toBodies(body["authorizations"]).length === 0 ? workspaces.sole?.() : undefined;
  }

  function taking(): Delivery {
    const current = delivery();
    if (current === undefined) throw new Error("This process takes nothing in at the moment.");
    return current;
  }

  async function acceptAll({ events }: HandlerResult): Promise<void> {
    const [first] = events;
    // An interaction waits for no other event of its channel, so its own key is its queue.
    if (first !== undefined) await taking().enqueue(first.key, async () => events);
  }

  function warnOfStranger(body: Body): void {
    const teamId = teamsOf(body)[0] ?? "";
    if (warnedTeams.has(teamId)) return;
    warnedTeams.add(teamId);
    log.warn(
      { teamId },
      "Slack delivers an event of a workspace in which the bot is not installed; it is not answered.",
    );
  }

  return {
    workspaceOf,
    async onEvent(event, body) {
      const workspace = await workspaceOf(body);
      if (workspace === undefined) warnOfStranger(body);
      if (MESSAGES.has(readText(event["type"]) ?? "")) {
        if (workspace !== undefined) await listener(event, workspace);
        return NOTHING;
      }
      taking();
      const result = await interactions.onEvent(event, body, workspace);
      await acceptAll(result);
      return result;
    },
    async onInteraction(body) {
      taking();
      const workspace = await workspaceOf(body);
      if (workspace === undefined) throw new Error("The bot is not installed in this workspace.");
      const result = await interactions.onInteraction(body, workspace);
      try {
        await acceptAll(result);
        return result;
      } catch (error) {
        // Slack never repeats an interaction.
        log.warn({ err: error }, "A command, a button or a form could not be stored.");
        const [first] = result.events;
        return {
          events: [],
          ...(toRefusal(body) ?? (first && { afterwards: () => tell(first, workspace, NOT_KEPT) })),
        };
      }
    },
  };
}

/** Answers a command, and a form, which stays open with what was typed; undefined where Slack shows no answer. */
function toRefusal(body: Body): Pick<HandlerResult, "response"> | undefined {
  if (body["command"] !== undefined) return { response: { response_type: "ephemeral", text: NOT_KEPT } };
  const field = toBodies(toBody(body["view"])["blocks"]).find(({ type }) => type === "input");
  const blockId = body["type"] === "view_submission" ? readText(field?.["block_id"]) : undefined;
  return blockId === undefined
    ? undefined
    : { response: { response_action: "errors", errors: { [blockId]: NOT_KEPT } } };
}

/** The workspaces that a payload may belong to, the surest first. In shared channels people act from their own. */
function teamsOf(body: Body): string[] {
  const authorized = toBodies(body["authorizations"]).map(({ team_id }) => team_id);
  const { team_id, enterprise_id } = body;
  const found = [
    ...authorized,
    toBody(body["view"])["app_installed_team_id"],
    toBody(body["team"])["id"],
    team_id,
    enterprise_id,
  ];
  return [...new Set(found.map(readText).filter((id) => id !== undefined))];
}

export interface BoltOptions {
  receiver: Receiver;
  dispatcher: Dispatcher;
  log: Logger;
}

/**
 * Makes a Bolt app that acknowledges a delivery only once it has been accepted. Bolt acknowledges an event before it
 * calls a listener, so events are handled before Bolt, where both transports hand them to the app. Bolt leaves the
 * acknowledgement of interactions to the listener, so they go through it.
 */
export function createBolt({ receiver, dispatcher, log }: BoltOptions): App {
  const app = new App({
    receiver,
    logger: toBoltLogger(log),
    clientOptions: { ...CLIENT_OPTIONS },
    convoStore: false,
    deferInitialization: true,
    async authorize(_source, body) {
      const workspace = await dispatcher.workspaceOf(toBody(body));
      if (workspace === undefined) throw new Error("The bot is not installed in this workspace.");
      const { teamId, botId, botUserId } = workspace;
      // Bolt keeps a client for each token that it is given, for good, and tokens rotate. No listener uses a client.
      return { teamId, botId, botUserId };
    },
  });
  const dispatch = app.processEvent.bind(app);

  app.processEvent = async (received) => {
    const body = toBody(received.body);
    const event = toBody(body["event"]);
    if (isInteraction(body)) return dispatch(received);
    const isEvent = readText(event["type"]) !== undefined;
    if (!isEvent) log.warn({ type: body["type"] }, "Slack sent something that is no event.");
    const result = isEvent ? await waitWithin(TAKE_MS, dispatcher.onEvent(event, body), TOO_LATE) : undefined;
    await received.ack();
    runLater(result);
  };

  app.use(async ({ body, ...rest }) => {
    const result = await waitWithin(TAKE_MS, dispatcher.onInteraction(toBody(body)), TOO_LATE);
    const { ack } = rest as { ack?: (response?: unknown) => Promise<void> };
    await ack?.(result.response);
    runLater(result);
  });

  function runLater(result: HandlerResult | undefined): void {
    result?.afterwards?.().catch((error: unknown) => {
      log.warn({ err: error, refusal: codeOf(error) }, "The work after an acknowledged delivery of Slack's failed.");
    });
  }

  return app;
}

function isInteraction(body: Body): boolean {
  return body["command"] !== undefined || INTERACTIONS.has(String(body["type"]));
}

/**
 * Passes Bolt's log lines on, one level lower: an error that Bolt reports is repaired here or rejected as well. Bolt's
 * debug lines hold whole messages and are always dropped; its other lines may quote them, so they are `debug` here.
 */
export function toBoltLogger(log: Logger): BoltLogger {
  const say = (parts: readonly unknown[]) =>
    log.debug(`Bolt: ${parts.map((part) => (part instanceof Error ? part.message : String(part))).join(" ")}`);
  return {
    debug: () => {},
    info: (...parts) => say(parts),
    warn: (...parts) => say(parts),
    error(...parts) {
      const err = parts.find((part) => part instanceof Error);
      log.warn({ ...(err !== undefined && { err }) }, "Bolt reported a problem.");
      say(parts);
    },
    setLevel: () => {},
    // Anything but debug: at that level Bolt logs bodies on ways of its own.
    getLevel: () => LogLevel.INFO,
    setName: () => {},
  };
}
