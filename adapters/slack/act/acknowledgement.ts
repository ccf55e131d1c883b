import type { ReceiverEvent } from "@slack/bolt";
import type { Logger } from "pino";
import { waitWithin } from "../../../src/concurrency/deadlines.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { codeOf } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import type { Delivery } from "../hear/delivery.ts";
import type { Listener } from "../hear/listener.ts";

/** Shorter than the three seconds after which Slack delivers an event again. */
const TAKE_MS = 2_500;
const TOO_LATE = "The bot did not store it in time.";
const FIND_MS = 2_000;
const MESSAGES = new Set(["message", "app_mention"]);
const INTERACTIONS = new Set(["block_actions", "shortcut", "message_action", "view_submission", "view_closed"]);
/** The reply to a command, a press or a form that could not be stored. */
export const NOT_KEPT = "My storage is unavailable, so I couldn't save that. Try again in a minute.";

export interface HandlerResult {
  /** The core accepts these events, in this order, before Slack gets its acknowledgement. */
  events: readonly InboundEvent[];
  /** Sent with the acknowledgement: the reply to a command, or the `response_action` for a form. */
  response?: Body | string;
  /** Runs after the acknowledgement. Its rejection is only logged. */
  afterwards?(): Promise<void>;
}

export const NOTHING: HandlerResult = { events: [] };

export interface Interactions {
  /** Slack waits three seconds for the acknowledgement, and never repeats an interaction. */
  onInteraction(body: Body, workspace: Workspace): Promise<HandlerResult>;
  /**
   * Handles an event that is not about a message, for example `app_home_opened`, `agent_session_stopped` or
   * `tokens_revoked`. `workspace` is undefined if the bot is no longer installed. If this rejects, Slack repeats the
   * event.
   */
  onEvent(event: Body, body: Body, workspace: Workspace | undefined): Promise<HandlerResult>;
  /** Redraws a person's home tab. Never rejects; ignores failures. */
  redrawHome(where: { teamId: string; userId: string; channelId: string }): Promise<void>;
}

export interface AcknowledgementDeps {
  workspaces: Workspaces;
  /** Undefined while the adapter accepts no events. */
  delivery(): Delivery | undefined;
  listener: Listener;
  interactions: Pick<Interactions, "onInteraction" | "onEvent">;
  tell(event: InboundEvent, workspace: Workspace, words: string): Promise<void>;
  log: Logger;
}

/**
 * Finds a delivery's workspace and handler, and acknowledges the delivery when the core has accepted its events.
 * Rejects without acknowledging the delivery if a step fails or takes too long.
 */
export type TakeDelivery = (received: Pick<ReceiverEvent, "body" | "ack">) => Promise<void>;

export function createTakeDelivery(deps: AcknowledgementDeps): TakeDelivery {
  const { workspaces, delivery, listener, interactions, tell, log } = deps;
  const warnedTeams = new Set<string>();

  async function workspaceOf(body: Body): Promise<Workspace | undefined> {
    const signal = AbortSignal.timeout(FIND_MS);
    for (const teamId of teamsOf(body)) {
      const found = await workspaces.find(teamId, signal, enterpriseOf(body));
      if (found !== undefined) return found;
    }
    // If a person from another organisation presses a button, Slack names their workspace, which has no installation.
    // An event names its installations. A delivery that names none can only be for the single installation.
    return toBodies(body["authorizations"]).length === 0 ? workspaces.sole?.() : undefined;
  }

  function currentDelivery(): Delivery {
    const current = delivery();
    if (current === undefined) throw new Error("This process accepts no events right now.");
    return current;
  }

  async function acceptAll({ events }: HandlerResult): Promise<void> {
    const [first] = events;
    // Queues an interaction under its own key, because it does not wait for other events of its channel.
    if (first !== undefined) await currentDelivery().enqueue(first.key, async () => events);
  }

  function warnOfUnknownTeam(body: Body): void {
    const teamId = teamsOf(body)[0] ?? "";
    if (warnedTeams.has(teamId)) return;
    warnedTeams.add(teamId);
    log.warn(
      { teamId },
      "Slack delivers events from a workspace that has not installed the bot; the bot ignores them.",
    );
  }

  async function onEvent(event: Body, body: Body): Promise<HandlerResult> {
    const workspace = await workspaceOf(body);
    if (workspace === undefined) warnOfUnknownTeam(body);
    if (MESSAGES.has(readText(event["type"]) ?? "")) {
      if (workspace !== undefined) await listener(event, workspace);
      return NOTHING;
    }
    currentDelivery();
    const result = await interactions.onEvent(event, body, workspace);
    await acceptAll(result);
    return result;
  }

  async function onInteraction(body: Body): Promise<HandlerResult> {
    currentDelivery();
    const workspace = await workspaceOf(body);
    if (workspace === undefined) throw new Error("The bot is not installed in this workspace.");
    const result = await interactions.onInteraction(body, workspace);
    try {
      await acceptAll(result);
      return result;
    } catch (error) {
      // Tells the person, because Slack never repeats an interaction.
      log.warn({ err: error }, "Could not store a command, a button press or a form.");
      const [first] = result.events;
      return {
        events: [],
        ...(toRefusal(body) ?? (first && { afterwards: () => tell(first, workspace, NOT_KEPT) })),
      };
    }
  }

  async function take(body: Body): Promise<HandlerResult> {
    if (isInteraction(body)) return onInteraction(body);
    const event = toBody(body["event"]);
    if (readText(event["type"]) !== undefined) return onEvent(event, body);
    log.warn({ type: body["type"] }, "Slack sent a delivery that is not an event.");
    return NOTHING;
  }

  return async ({ body, ack }) => {
    const result = await waitWithin(TAKE_MS, take(toBody(body)), TOO_LATE).catch((error: unknown) => {
      log.info({ err: error }, "Did not acknowledge a delivery from Slack, because handling it failed.");
      throw error;
    });
    await ack(result.response);
    result.afterwards?.().catch((error: unknown) => {
      log.warn({ err: error, refusal: codeOf(error) }, "Slack's delivery was acknowledged, but the follow-up failed.");
    });
  };
}

function isInteraction(body: Body): boolean {
  return body["command"] !== undefined || INTERACTIONS.has(String(body["type"]));
}

/** Says that an action was not stored; a form stays open with its values. Undefined if Slack cannot show that. */
function toRefusal(body: Body): Pick<HandlerResult, "response"> | undefined {
  if (body["command"] !== undefined) return { response: { response_type: "ephemeral", text: NOT_KEPT } };
  const field = toBodies(toBody(body["view"])["blocks"]).find(({ type }) => type === "input");
  const blockId = body["type"] === "view_submission" ? readText(field?.["block_id"]) : undefined;
  return blockId === undefined
    ? undefined
    : { response: { response_action: "errors", errors: { [blockId]: NOT_KEPT } } };
}

/** The workspaces of a payload, the most certain first. In a shared channel, people act from their own workspace. */
function teamsOf(body: Body): string[] {
  const organisation = enterpriseOf(body);
  const named = [
    ...toBodies(body["authorizations"]).map(({ team_id }) => team_id),
    toBody(body["view"])["app_installed_team_id"],
    // Slack names no team if a whole organisation installed the app.
    toBody(body["team"])["id"],
    body["team_id"],
    toBody(body["user"])["team_id"],
  ];
  const ids = new Set(named.map(readText).filter((id) => id !== undefined));
  return [...ids].filter((id) => id !== organisation);
}

function enterpriseOf(body: Body): string | undefined {
  const [authorization] = toBodies(body["authorizations"]);
  const { enterprise_id } = authorization ?? body;
  return [enterprise_id, toBody(body["enterprise"])["id"], toBody(body["team"])["enterprise_id"]]
    .map(readText)
    .find((id) => id !== undefined);
}
