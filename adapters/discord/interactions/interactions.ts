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
import type { Logger } from "pino";
import type { ImagineMenu, ListModels } from "../../../src/port/catalogue.ts";
import type { Action, InboundEvent } from "../../../src/port/events.ts";
import type { Api } from "../api/client.ts";
import type { Files } from "../api/files.ts";
import type { Delivery } from "../listen/delivery.ts";
import type { FinalMessages } from "../write/final-message.ts";
import { expiryOf, ORIGINAL } from "../write/interaction-token.ts";
import { readCustomId } from "../write/message-body.ts";
import { type Acknowledge, completeModels, createAcknowledge } from "./acknowledge.ts";
import { ASK, IMAGINE, USE_AS_REFERENCE } from "./commands.ts";
import {
  type Asked,
  type InteractionEventDeps,
  isBesideSecret,
  placeOf,
  readOptions,
  toActionEvent,
  toAskAboutEvent,
  toAskEvent,
  toCommandEvent,
  toImagineEvent,
  toImagineRequest,
} from "./events.ts";
import { createPictureForms } from "./picture-forms.ts";
import { readReasonForm, toReasonForm } from "./reason-form.ts";

/** Everybody sees the results of these, unless the picture itself is ephemeral. */
const PUBLIC_ACTIONS: ReadonlySet<Action> = new Set(["again", "vary", "upscale"]);

export interface InteractionsDeps extends InteractionEventDeps {
  api: Api;
  files: Files;
  delivery: Pick<Delivery, "enqueue">;
  listModels: ListModels;
  imagine?: ImagineMenu;
  /** Tokens that are acknowledged and wait for their answer. */
  fresh: Map<string, true>;
  finalMessages: Pick<FinalMessages, "promise" | "settle">;
  log: Logger;
}

type TakenAs = "answer" | "press";
/** `shown`: the first answer, where that is a form. */
type Take = (
  asked: Asked,
  as: TakenAs,
  toEvent: () => InboundEvent | Promise<InboundEvent>,
  shown?: object,
) => Promise<void>;

/** Answers to commands, buttons and menus: acknowledged before anything else, because Discord waits three seconds. */
export function createInteractions(deps: InteractionsDeps): (interaction: APIInteraction) => Promise<void> {
  const acknowledge = createAcknowledge(deps.api, deps.log);
  const take = createTake(deps, acknowledge);
  const forms = deps.imagine && createPictureForms({ ...deps, menu: deps.imagine, acknowledge });

  function onCommand(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const { name } = interaction.data;
    const isImagine = name === IMAGINE && deps.imagine !== undefined;
    // The answer to a command is ephemeral; the answer to a question is for all, unless it was asked in private.
    const isPrivate = name === ASK || isImagine ? readOptions(interaction)["private"] === true : true;
    const asked: Asked = { interaction, isPrivate, isAcknowledged: false };
    return take(asked, "answer", () => {
      if (isImagine) return toImagineEvent(asked, toImagineRequest(interaction, deps), deps);
      return name === ASK ? toAskEvent(asked, deps) : toCommandEvent(asked, deps);
    });
  }

  async function onMenu(interaction: APIMessageApplicationCommandInteraction): Promise<void> {
    if (interaction.data.name === USE_AS_REFERENCE) {
      const isOpen = await forms?.openReference(interaction);
      if (isOpen !== true) await acknowledge(interaction, say("There is no picture in this message."));
      return;
    }
    const asked: Asked = { interaction, isPrivate: false, isAcknowledged: false };
    await take(asked, "answer", () => toAskAboutEvent(asked, interaction, deps));
  }

  async function onPress(interaction: APIMessageComponentInteraction): Promise<void> {
    const press = readCustomId(interaction.data.custom_id);
    const action = press?.action;
    if (action === "edit" && forms !== undefined) return forms.openEdit(interaction, press?.turnId ?? "");
    if (press === undefined || action === undefined || action === "edit") {
      await acknowledge(interaction, say("This button does not do anything any more."));
      return;
    }
    const isPrivate = !PUBLIC_ACTIONS.has(action) || isBesideSecret(interaction);
    const asked: Asked = { interaction, isPrivate, isAcknowledged: false };
    const form = action === "bad" ? toReasonForm(press) : undefined;
    await take(asked, "press", () => toActionEvent(asked, interaction, { ...press, action }, deps), form);
  }

  /** Undefined for another form. */
  function onReason(interaction: APIModalSubmitInteraction): Promise<void> | undefined {
    const sent = readReasonForm(interaction);
    if (sent === undefined) return undefined;
    const { press, reason } = sent;
    const asked: Asked = { interaction, isPrivate: true, isAcknowledged: false, isPress: true };
    const judged = { ...press, action: "bad" as const };
    return take(asked, "press", () => ({
      ...toActionEvent(asked, interaction, judged, deps),
      ...(reason !== "" && { reason }),
    }));
  }

  async function onForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const onOther = onReason(interaction);
    if (onOther !== undefined) return onOther;
    const toEvent = forms?.read(interaction);
    if (toEvent === undefined) {
      await acknowledge(interaction, say("This form does not do anything any more."));
      return;
    }
    const asked: Asked = { interaction, isPrivate: isBesideSecret(interaction), isAcknowledged: false };
    await take(asked, "answer", () => toEvent(asked));
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

/** Acknowledges an interaction and hands over what it asks for. */
function createTake({ delivery, fresh, finalMessages }: InteractionsDeps, acknowledge: Acknowledge): Take {
  return async (asked, as, toEvent, shown) => {
    const { isPrivate } = asked;
    const promise = shown === undefined ? defer(as, isPrivate) : { type: InteractionResponseType.Modal, data: shown };
    const outcome = await acknowledge(asked.interaction, promise);
    // Another process has it.
    if (outcome === "taken") return;
    // Nobody can be told the answer that only one person may see. Whether that was promised after all is not known.
    if (outcome === "late" && isPrivate && as === "answer") return acknowledge.apologise(asked.interaction);
    // A form leaves nothing behind that an answer could take the place of.
    asked.isAcknowledged = outcome === "done" && shown === undefined;
    if (asked.isAcknowledged) fresh.set(asked.interaction.token, true);
    const promised = asked.isAcknowledged && isPrivate && as === "answer" ? toPromised(asked) : undefined;
    if (promised !== undefined) finalMessages.promise(promised);
    const isTaken = await delivery.enqueue(placeOf(asked.interaction).channelId, async () => [await toEvent()]);
    if (isTaken || !asked.isAcknowledged || as !== "answer") return;
    if (promised !== undefined) finalMessages.settle(promised, ORIGINAL);
    await acknowledge.apologise(asked.interaction);
  };
}

function toPromised({ interaction }: Asked): Parameters<FinalMessages["promise"]>[0] {
  const { token, application_id: applicationId, id } = interaction;
  return { token, applicationId, expiresAt: expiryOf(id) };
}

type Promised = Parameters<Acknowledge>[1];

function defer(as: TakenAs, isPrivate: boolean): Promised {
  if (as === "press") return { type: InteractionResponseType.DeferredMessageUpdate };
  const flags = isPrivate ? MessageFlags.Ephemeral : 0;
  return { type: InteractionResponseType.DeferredChannelMessageWithSource, data: { flags } };
}

function say(content: string): Promised {
  const data = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
  return { type: InteractionResponseType.ChannelMessageWithSource, data };
}
