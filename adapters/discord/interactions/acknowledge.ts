import { setTimeout as sleep } from "node:timers/promises";
import {
  type APIApplicationCommandAutocompleteInteraction,
  type APIInteraction,
  InteractionResponseType,
  MessageFlags,
  Routes,
} from "discord.js";
import type { Logger } from "pino";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import type { ListModels } from "../../../src/port/catalogue.ts";
import type { Api } from "../api/client.ts";
import { ApiError, codeOf, isUncertain } from "../api/error.ts";
import { ORIGINAL, STORE_IS_AWAY } from "../write/interaction-token.ts";

/** Discord waits for three seconds, a part of which the way there takes. */
const ACKNOWLEDGE_MS = 2_500;
/** Longest look-up for a form, which must be the first answer, within Discord's three seconds. Later values stay empty. */
export const FORM_MS = 1_500;
/** Before the same is tried again after a call whose answer was lost. */
const AGAIN_MS = 150;
const APOLOGY_MS = 10_000;
const TAKEN = 40060;

/**
 * `done`: the person sees that it was heard. `taken`: another process of ours was first. `late`: Discord no longer
 * waits, and the person was told that the application did not respond.
 */
export type Acknowledged = "done" | "taken" | "late";

type Interaction = Pick<APIInteraction, "id" | "token" | "application_id">;

/** The first answer to an interaction. */
export interface FirstAnswer {
  type: InteractionResponseType;
  data?: object;
}

/** Gives Discord the first answer to an interaction. Never rejects. */
export interface Acknowledge {
  (interaction: Pick<Interaction, "id" | "token">, body: FirstAnswer): Promise<Acknowledged>;
  /**
   * Says that the event waits to be stored: where the answer was promised, or to the person alone where none was. An
   * answer that was quicker is left as it is.
   */
  sayStoreIsAway(interaction: Interaction): Promise<void>;
  /** Says in place of the promised answer that there will be none. */
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
        // The call whose answer was lost has acknowledged it.
        if (codeOf(error) === TAKEN) return isDoubtful ? "done" : "taken";
        isDoubtful ||= isUncertain(error);
        if (signal.aborted || !(await mayTryAgain(error, signal))) {
          log.warn({ err: error }, "A command or a button could not be acknowledged in time.");
          return "late";
        }
      }
    }
  }

  /** The first follow-up takes the place of the promise; only where there is none, its own flags count. */
  async function sayStoreIsAway({ application_id, token }: Interaction): Promise<void> {
    const flags = MessageFlags.Ephemeral | MessageFlags.SuppressEmbeds;
    const body = { content: STORE_IS_AWAY, allowed_mentions: { parse: [] }, flags };
    const route = Routes.webhook(application_id, token);
    await api.call({ method: "POST", route, body, isBot: false }, AbortSignal.timeout(ACKNOWLEDGE_MS)).catch(() => {});
  }

  async function apologise({ application_id, token }: Interaction): Promise<void> {
    const content = "I could not store this, so I cannot answer it. Please try again in a moment.";
    const body = { content, allowed_mentions: { parse: [] }, flags: MessageFlags.SuppressEmbeds };
    const route = Routes.webhookMessage(application_id, token, ORIGINAL);
    const signal = AbortSignal.timeout(APOLOGY_MS);
    for (;;) {
      try {
        await api.call({ method: "PATCH", route, body, isBot: false }, signal);
        return;
      } catch (error) {
        if (!signal.aborted && (await mayTryAgain(error, signal))) continue;
        log.warn({ err: error }, "A person could not be told that a command or a button was not stored.");
        return;
      }
    }
  }

  return Object.assign(acknowledge, { sayStoreIsAway, apologise });
}

/** Waits as long as is needed before the next try; false where there is none, or no time for it. */
async function mayTryAgain(error: unknown, signal: AbortSignal): Promise<boolean> {
  const pauseMs = isUncertain(error) ? AGAIN_MS : error instanceof ApiError ? error.retryAfterMs : undefined;
  if (pauseMs === undefined || pauseMs > ACKNOWLEDGE_MS) return false;
  return sleep(pauseMs, true, { signal }).catch(() => false);
}

/** The first answer that keeps the place of another one; a pressed button leaves its message as it is. */
export function toDeferral({ isPress, isPrivate }: { isPress: boolean; isPrivate: boolean }): FirstAnswer {
  if (isPress) return { type: InteractionResponseType.DeferredMessageUpdate };
  const flags = isPrivate ? MessageFlags.Ephemeral : 0;
  return { type: InteractionResponseType.DeferredChannelMessageWithSource, data: { flags } };
}

/** Resolves to `otherwise` when `ask` takes longer than `ms` milliseconds or fails. */
export function askWithin<T>(ms: number, ask: (signal: AbortSignal) => Promise<T>, otherwise: T): Promise<T> {
  const signal = AbortSignal.timeout(ms);
  return untilAborted(ask(signal), signal).catch(() => otherwise);
}

/** Within Discord's three seconds, with time left for the way. */
const LIST_MS = 1_500;
const MAX_CHOICES = 25;
const MAX_CHARS = 100;

/** Proposes models for what somebody has typed so far: none when the list is not there in time. Never rejects. */
export async function completeModels(
  { data }: APIApplicationCommandAutocompleteInteraction,
  listModels: ListModels,
): Promise<{ name: string; value: string }[]> {
  const focused = (data.options as typeof data.options | undefined)?.find(
    (option) => "focused" in option && option.focused === true,
  );
  const typed = focused !== undefined && "value" in focused ? String(focused.value).toLowerCase() : "";
  const models = await askWithin(LIST_MS, listModels, []);
  return models
    .filter((model) => model.length <= MAX_CHARS && model.toLowerCase().includes(typed))
    .slice(0, MAX_CHOICES)
    .map((model) => ({ name: model, value: model }));
}
