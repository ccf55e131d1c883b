import {
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  ApplicationCommandType,
  InteractionResponseType,
  InteractionType,
  MessageFlags,
} from "discord.js";
import type { Logger } from "pino";
import type { InboundEvent } from "../../src/adapter.ts";
import type { Api } from "./api.ts";
import { ASK } from "./commands.ts";
import type { Delivery } from "./delivery.ts";
import { readCustomId } from "./drafts.ts";
import { type Acknowledge, createAcknowledge } from "./interactions/acknowledge.ts";
import {
  type Asked,
  type InteractionEventDeps,
  readOptions,
  toActionEvent,
  toAskAboutEvent,
  toAskEvent,
  toCommandEvent,
} from "./interactions/events.ts";
import { type ListModels, proposeModels } from "./interactions/proposals.ts";

const MAX_FRESH = 1_000;

export interface InteractionsDeps extends InteractionEventDeps {
  api: Api;
  delivery: Pick<Delivery, "enqueue">;
  listModels: ListModels;
  /** Tokens that are acknowledged and wait for their answer. */
  fresh: Set<string>;
  log: Logger;
}

/** Answers to commands, buttons and menus: acknowledged before anything else, because Discord waits three seconds. */
export function createInteractions(deps: InteractionsDeps): (interaction: APIInteraction) => Promise<void> {
  const { api, delivery, fresh } = deps;
  const acknowledge = createAcknowledge(api, deps.log);

  async function take(asked: Asked, type: "answer" | "press", toEvent: () => InboundEvent): Promise<void> {
    const { isPrivate } = asked;
    const flags = isPrivate ? MessageFlags.Ephemeral : 0;
    const promise = type === "press" ? { type: InteractionResponseType.DeferredMessageUpdate } : defer(flags);
    const outcome = await acknowledge(asked.interaction, promise);
    // Another process has it, or nobody can be told the answer that only one person may see.
    if (outcome === "taken" || (outcome === "late" && isPrivate && type === "answer")) return;
    asked.isAcknowledged = outcome === "done";
    if (asked.isAcknowledged && type === "answer") remember(fresh, asked.interaction.token);
    const isTaken = await delivery.enqueue(channelOf(asked.interaction), async () => [toEvent()]);
    if (!isTaken && asked.isAcknowledged && type === "answer") await acknowledge.apologise(asked.interaction);
  }

  function onCommand(interaction: APIChatInputApplicationCommandInteraction): Promise<void> {
    const isAsk = interaction.data.name === ASK;
    // What a command answers is for who gave it; what is asked is for all, unless it was asked in private.
    const isPrivate = isAsk ? readOptions(interaction)["private"] === true : true;
    const asked: Asked = { interaction, isPrivate, isAcknowledged: false };
    const toEvent = () => (isAsk ? toAskEvent(asked, deps) : toCommandEvent(asked, deps));
    return take(asked, "answer", toEvent);
  }

  async function onPress(interaction: APIMessageComponentInteraction): Promise<void> {
    const press = readCustomId(interaction.data.custom_id);
    if (press === undefined) {
      await acknowledge(interaction, say("This button does not do anything any more."));
      return;
    }
    const asked: Asked = { interaction, isPrivate: true, isAcknowledged: false };
    await take(asked, "press", () => toActionEvent(asked, interaction, press, deps));
  }

  return async (interaction) => {
    if (interaction.type === InteractionType.ApplicationCommandAutocomplete) {
      const data = { choices: await proposeModels(interaction, deps.listModels) };
      await acknowledge(interaction, { type: InteractionResponseType.ApplicationCommandAutocompleteResult, data });
    } else if (interaction.type === InteractionType.MessageComponent) {
      await onPress(interaction);
    } else if (interaction.type === InteractionType.ApplicationCommand) {
      if (interaction.data.type === ApplicationCommandType.ChatInput) {
        await onCommand(interaction as APIChatInputApplicationCommandInteraction);
      } else if (interaction.data.type === ApplicationCommandType.Message) {
        const about = interaction as APIMessageApplicationCommandInteraction;
        const asked: Asked = { interaction: about, isPrivate: false, isAcknowledged: false };
        await take(asked, "answer", () => toAskAboutEvent(asked, about, deps));
      }
    }
  };
}

function remember(fresh: Set<string>, token: string): void {
  fresh.add(token);
  const [oldest] = fresh;
  if (fresh.size > MAX_FRESH && oldest !== undefined) fresh.delete(oldest);
}

type Promised = Parameters<Acknowledge>[1];

function defer(flags: number): Promised {
  return { type: InteractionResponseType.DeferredChannelMessageWithSource, data: { flags } };
}

function say(content: string): Promised {
  const data = { content, flags: MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
  return { type: InteractionResponseType.ChannelMessageWithSource, data };
}

function channelOf({ channel, id }: APIInteraction): string {
  return channel?.id ?? id;
}
