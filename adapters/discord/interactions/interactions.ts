import {
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
  ApplicationCommandType,
  InteractionResponseType,
  InteractionType,
  MessageFlags,
} from "discord.js";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import type { Action, InboundEvent } from "../../../src/port/events.ts";
import type { Files } from "../api/files.ts";
import type { Delivery } from "../listen/delivery.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import type { FinalMessages } from "../write/final-message.ts";
import { expiryOf, ORIGINAL } from "../write/interaction-token.ts";
import { readCustomId } from "../write/message-body.ts";
import { type Acknowledge, askWithin, completeModels, type FirstAnswer, FORM_MS, toDeferral } from "./acknowledge.ts";
import { ASK, IMAGINE, PERSONA, USE_AS_REFERENCE } from "./commands.ts";
import {
  type InteractionEventDeps,
  isOnEphemeral,
  type PendingInteraction,
  placeOf,
  readOptions,
  toActionEvent,
  toActor,
  toAskAboutEvent,
  toAskEvent,
  toCommandEvent,
  toImagineEvent,
  toPersonaEvent,
  toPictureRequest,
} from "./events.ts";
import { readPersonaForm, toPersonaForm } from "./persona-form.ts";
import { createPictureForms } from "./picture-forms.ts";
import { readReasonForm, toReasonForm } from "./reason-form.ts";

/** Everybody sees the results of these, unless the picture itself is ephemeral. */
const PUBLIC_ACTIONS: ReadonlySet<Action> = new Set(["again", "vary", "upscale"]);

export interface InteractionsDeps
  extends InteractionEventDeps,
    Pick<DiscordAdapterOptions, "listModels" | "readPersona" | "imagine" | "now"> {
  acknowledge: Acknowledge;
  files: Files;
  delivery: Pick<Delivery, "enqueue">;
  /** By token, the acknowledgements of the interactions that wait for their answer. */
  acknowledgements: Map<string, Promise<unknown>>;
  finalMessages: Pick<FinalMessages, "promise" | "settle">;
}

/** Longest that the acknowledgement, for which Discord waits three seconds, waits for the event to be stored. */
const STORE_MS = 1_500;

type TakenAs = "answer" | "press";
/** `shown`: the first answer, where that is a form. */
type Take = (
  pending: PendingInteraction,
  as: TakenAs,
  toEvent: () => InboundEvent | Promise<InboundEvent>,
  shown?: object,
) => Promise<void>;

/** Answers to commands, buttons and menus: acknowledged once they are stored, or Discord waits no longer. */
export function createInteractions(deps: InteractionsDeps): (interaction: APIInteraction) => Promise<void> {
  const { acknowledge } = deps;
  const take = createTake(deps);
  const forms = deps.imagine && createPictureForms({ ...deps, menu: deps.imagine });

  function onCommand(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const { name } = interaction.data;
    if (name === PERSONA && Object.keys(readOptions(interaction)).length === 0) return openPersona(interaction);
    const isImagine = name === IMAGINE && deps.imagine !== undefined;
    // The answer to a command is ephemeral; the answer to a question is for all, unless it was asked in private.
    const isPrivate = name === ASK || isImagine ? readOptions(interaction)["private"] === true : true;
    const pending: PendingInteraction = { interaction, isPrivate };
    return take(pending, "answer", () => {
      if (isImagine) return toImagineEvent(pending, toPictureRequest(interaction, deps), deps);
      return name === ASK ? toAskEvent(pending, deps) : toCommandEvent(pending, deps);
    });
  }

  async function openPersona(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const read = async () => (await deps.readPersona?.(toActor(interaction, deps).reply)) ?? {};
    const data = toPersonaForm(await askWithin(FORM_MS, read, {}));
    await acknowledge(interaction, { type: InteractionResponseType.Modal, data });
  }

  async function onMenu(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    if (interaction.data.name === USE_AS_REFERENCE) {
      const isOpen = await forms?.openReference(interaction);
      if (isOpen !== true) await acknowledge(interaction, say("There is no picture in this message."));
      return;
    }
    const pending: PendingInteraction = { interaction, isPrivate: false };
    await take(pending, "answer", () => toAskAboutEvent(pending, interaction, deps));
  }

  async function onPress(interaction: APIMessageComponentInteraction): Promise<void> {
    const press = readCustomId(interaction.data.custom_id);
    const action = press?.action;
    if (action === "edit" && forms !== undefined) return forms.openEdit(interaction, press?.turnId ?? "");
    if (press === undefined || action === undefined || action === "edit") {
      await acknowledge(interaction, say("This button does not do anything any more."));
      return;
    }
    const isPrivate = !PUBLIC_ACTIONS.has(action) || isOnEphemeral(interaction);
    const pending: PendingInteraction = { interaction, isPrivate };
    const form = action === "bad" ? toReasonForm(press) : undefined;
    await take(pending, "press", () => toActionEvent(pending, interaction, { ...press, action }, deps), form);
  }

  /** Undefined for another form. */
  function onReason(interaction: APIModalSubmitInteraction): Promise<void> | undefined {
    const sent = readReasonForm(interaction);
    if (sent === undefined) return undefined;
    const { press, reason } = sent;
    const pending: PendingInteraction = { interaction, isPrivate: true, isPress: true };
    const judged = { ...press, action: "bad" as const };
    return take(pending, "press", () => ({
      ...toActionEvent(pending, interaction, judged, deps),
      ...(reason !== "" && { reason }),
    }));
  }

  async function onForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const onOther = onReason(interaction);
    if (onOther !== undefined) return onOther;
    const persona = readPersonaForm(interaction);
    if (persona !== undefined) {
      const told: PendingInteraction = { interaction, isPrivate: true };
      return take(told, "answer", () => toPersonaEvent(told, persona, deps));
    }
    const toEvent = forms?.read(interaction);
    if (toEvent === undefined) {
      await acknowledge(interaction, say("This form does not do anything any more."));
      return;
    }
    const pending: PendingInteraction = { interaction, isPrivate: isOnEphemeral(interaction) };
    await take(pending, "answer", () => toEvent(pending));
  }

  return async (interaction) => {
    if (interaction.type === InteractionType.ApplicationCommandAutocomplete) {
      const list = (interaction.data.name === IMAGINE ? deps.imagine : undefined)?.listModels ?? deps.listModels;
      const data = { choices: await completeModels(interaction, list) };
      await acknowledge(interaction, { type: InteractionResponseType.ApplicationCommandAutocompleteResult, data });
    } else if (interaction.type === InteractionType.MessageComponent) {
      await onPress(interaction);
    } else if (interaction.type === InteractionType.ModalSubmit) {
      await onForm(interaction);
    } else if (interaction.type === InteractionType.ApplicationCommand) {
      if (interaction.data.type === ApplicationCommandType.ChatInput) {
        await onCommand(interaction as APIChatInputApplicationCommandInteraction);
      } else if (interaction.data.type === ApplicationCommandType.Message) {
        await onMenu(interaction as APIMessageApplicationCommandInteraction);
      }
    }
  };
}

/**
 * Hands an interaction's event over and acknowledges the interaction once the event is stored, so that a process that
 * ends in between leaves no promise that waits for ever. When storing takes too long, the interaction is acknowledged
 * all the same, its person is told that it waits, and the event goes on being offered.
 */
function createTake({ acknowledge, delivery, acknowledgements, finalMessages, now }: InteractionsDeps): Take {
  return async (pending, as, toEvent, shown) => {
    const { interaction, isPrivate } = pending;
    const first =
      shown === undefined
        ? toDeferral({ isPress: as === "press", isPrivate })
        : { type: InteractionResponseType.Modal, data: shown };
    // A form leaves nothing behind that an answer could take the place of.
    pending.hasToken = shown === undefined;
    pending.heardAt = now();
    const taking = delivery.enqueue(placeOf(interaction).channelId, async () => [await toEvent()]);
    let isOffered = true;
    const settling = taking.finally(() => (isOffered = false));
    const acknowledging = waitAtMost(settling, STORE_MS).then(async () => {
      const acknowledged = await acknowledge(interaction, first);
      // Before an answer of this process, which waits for the acknowledgement and then takes the place.
      if (isOffered && acknowledged === "done" && pending.hasToken) await acknowledge.sayStoreIsAway(interaction);
      return acknowledged;
    });
    if (pending.hasToken) acknowledgements.set(interaction.token, acknowledging);
    // An acknowledgement whose answer was lost may have reached Discord.
    const isPromised = (await acknowledging) !== "taken" && as === "answer";
    const promised = isPromised && isPrivate ? toPromised(pending) : undefined;
    if (promised !== undefined) finalMessages.promise(promised);
    if ((await taking) || !isPromised) return;
    if (promised !== undefined) finalMessages.settle(promised, ORIGINAL);
    await acknowledge.apologise(interaction);
  };
}

function toPromised({ interaction, heardAt }: PendingInteraction): Parameters<FinalMessages["promise"]>[0] {
  const { token, application_id: applicationId, id } = interaction;
  return { token, applicationId, expiresAt: expiryOf({ id, heardAt }) };
}

function say(content: string): FirstAnswer {
  const data = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
  return { type: InteractionResponseType.ChannelMessageWithSource, data };
}
