import { setTimeout as sleep } from "node:timers/promises";
import { type APIInteraction, InteractionResponseType, MessageFlags, Routes } from "discord.js";
import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import type { Api } from "../api/client.ts";
import { ApiError, codeOf, isUncertain } from "../api/error.ts";
import type { Delivery } from "../hear/delivery.ts";
import { expiryOf, ORIGINAL, STORE_IS_AWAY } from "../write/interaction-token.ts";
import type { FinalMessages } from "../write/private-ending.ts";
import { type InteractionEventDeps, type PendingInteraction, placeOf } from "./user-action.ts";

/** Shorter than the three seconds that Discord waits, because those include the network round trip. */
const ACKNOWLEDGE_MS = 2_500;
/** Pause before a retry if the response to a call was lost. */
const AGAIN_MS = 150;
const APOLOGY_MS = 10_000;
const TAKEN = 40060;

/**
 * `done`: Discord shows the user that the bot received the interaction. `taken`: another process of this bot
 * acknowledged it first. `late`: Discord no longer waits, and shows that the application did not respond.
 */
export type Acknowledged = "done" | "taken" | "late";

type Interaction = Pick<APIInteraction, "id" | "token" | "application_id">;

export interface FirstAnswer {
  type: InteractionResponseType;
  data?: object;
}

/** Gives Discord the first response to an interaction. Never rejects. */
export interface Acknowledge {
  (interaction: Pick<Interaction, "id" | "token">, body: FirstAnswer): Promise<Acknowledged>;
  /**
   * Tells the user that the store does not respond, in the promised answer or privately. Never overwrites an answer.
   */
  sayStoreIsAway(interaction: Interaction): Promise<void>;
  apologise(interaction: Interaction): Promise<void>;
}

export function createAcknowledge(api: Api, log: Logger): Acknowledge {
  async function acknowledge({ id, token }: Pick<Interaction, "id" | "token">, body: object): Promise<Acknowledged> {
    const call = { method: "POST" as const, route: Routes.interactionCallback(id, token), body, isBot: false };
    const signal = AbortSignal.timeout(ACKNOWLEDGE_MS);
    for (let isDoubtful = false; ; ) {
      try {
        await api.call(call, signal);
        return "done";
      } catch (error) {
        // An earlier attempt of this process acknowledged it, but Discord's response was lost.
        if (codeOf(error) === TAKEN) return isDoubtful ? "done" : "taken";
        isDoubtful ||= isUncertain(error);
        if (signal.aborted || !(await mayTryAgain(error, signal))) {
          log.warn({ err: error }, "Could not acknowledge a command or a button in time.");
          return "late";
        }
      }
    }
  }

  /** Discord shows the first follow-up as the promised answer. Without a promise, the follow-up's own flags apply. */
  async function sayStoreIsAway({ application_id, token }: Interaction): Promise<void> {
    const flags = MessageFlags.Ephemeral | MessageFlags.SuppressEmbeds;
    const body = { content: STORE_IS_AWAY, allowed_mentions: { parse: [] }, flags };
    const route = Routes.webhook(application_id, token);
    await api.call({ method: "POST", route, body, isBot: false }, AbortSignal.timeout(ACKNOWLEDGE_MS)).catch(() => {});
  }

  async function apologise({ application_id, token }: Interaction): Promise<void> {
    const content = "I couldn't save this, so I can't answer it. Please try again in a moment.";
    const body = { content, allowed_mentions: { parse: [] }, flags: MessageFlags.SuppressEmbeds };
    const route = Routes.webhookMessage(application_id, token, ORIGINAL);
    const signal = AbortSignal.timeout(APOLOGY_MS);
    for (;;) {
      try {
        await api.call({ method: "PATCH", route, body, isBot: false }, signal);
        return;
      } catch (error) {
        if (!signal.aborted && (await mayTryAgain(error, signal))) continue;
        log.warn({ err: error }, "Could not tell a user that their command was not stored.");
        return;
      }
    }
  }

  return Object.assign(acknowledge, { sayStoreIsAway, apologise });
}

/** Waits before the next attempt. Resolves to false if a retry cannot help, or if there is no time for one. */
async function mayTryAgain(error: unknown, signal: AbortSignal): Promise<boolean> {
  const pauseMs = isUncertain(error) ? AGAIN_MS : error instanceof ApiError ? error.retryAfterMs : undefined;
  if (pauseMs === undefined || pauseMs > ACKNOWLEDGE_MS) return false;
  return sleep(pauseMs, true, { signal }).catch(() => false);
}

/** Promises a command an answer. Only acknowledges a press, so that the message with the button does not change. */
export function toDeferral({ isPress, isPrivate }: { isPress: boolean; isPrivate: boolean }): FirstAnswer {
  if (isPress) return { type: InteractionResponseType.DeferredMessageUpdate };
  const flags = isPrivate ? MessageFlags.Ephemeral : 0;
  return { type: InteractionResponseType.DeferredChannelMessageWithSource, data: { flags } };
}

/** After this time the bot acknowledges an interaction that is not stored yet. Discord waits three seconds. */
const STORE_MS = 1_500;

/**
 * Stores an interaction's event and only then acknowledges the interaction, so that a process that dies in between has
 * promised nothing. If the store is slow, acknowledges first, asks the user to wait, and keeps retrying. `shown`: a
 * form to show as the first response.
 */
export type Take = (
  pending: PendingInteraction,
  as: "answer" | "press",
  toEvent: () => InboundEvent | Promise<InboundEvent>,
  shown?: object,
) => Promise<void>;

export interface HandlerDeps extends InteractionEventDeps {
  acknowledge: Acknowledge;
  take: Take;
}

export interface TakeDeps {
  acknowledge: Acknowledge;
  delivery: Pick<Delivery, "enqueue">;
  /** The acknowledgements of the interactions that have no answer yet, by token. */
  acknowledgements: Map<string, Promise<unknown>>;
  finalMessages: Pick<FinalMessages, "promise" | "settle">;
  now(): number;
}

export function createTake({ acknowledge, delivery, acknowledgements, finalMessages, now }: TakeDeps): Take {
  return async (pending, as, toEvent, shown) => {
    const { interaction, isPrivate } = pending;
    const first =
      shown === undefined
        ? toDeferral({ isPress: as === "press", isPrivate })
        : { type: InteractionResponseType.Modal, data: shown };
    // A form leaves no message that an answer could replace, so its token is of no use.
    pending.hasToken = shown === undefined;
    pending.receivedAt = now();
    let isOffered = true;
    const taking = delivery
      .enqueue(placeOf(interaction).channelId, async () => [await toEvent()])
      .then(
        () => true,
        () => false,
      )
      .finally(() => (isOffered = false));
    const acknowledging = waitAtMost(taking, STORE_MS).then(async () => {
      const acknowledged = await acknowledge(interaction, first);
      // An answer from this process waits for this acknowledgement, so the answer comes later and replaces the notice.
      if (isOffered && acknowledged === "done" && pending.hasToken) await acknowledge.sayStoreIsAway(interaction);
      return acknowledged;
    });
    if (pending.hasToken) acknowledgements.set(interaction.token, acknowledging);
    // If the response was lost, Discord may still have received the acknowledgement, so the answer counts as promised.
    const isPromised = (await acknowledging) !== "taken" && as === "answer";
    const promised = isPromised && isPrivate ? toPromised(pending) : undefined;
    if (promised !== undefined) finalMessages.promise(promised);
    if ((await taking) || !isPromised) return;
    if (promised !== undefined) finalMessages.settle(promised, ORIGINAL);
    await acknowledge.apologise(interaction);
  };
}

function toPromised({ interaction, receivedAt }: PendingInteraction): Parameters<FinalMessages["promise"]>[0] {
  const { token, application_id: applicationId, id } = interaction;
  return { token, applicationId, expiresAt: expiryOf({ id, receivedAt }) };
}

export function say(content: string): FirstAnswer {
  const data = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
  return { type: InteractionResponseType.ChannelMessageWithSource, data };
}
