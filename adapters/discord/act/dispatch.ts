import {
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIModalSubmitInteraction,
  ApplicationCommandType,
  InteractionResponseType,
  InteractionType,
} from "discord.js";
import { IMAGINE } from "../install/slash-commands.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import { createTake, say, type TakeDeps } from "./acknowledgement.ts";
import { createButtons } from "./buttons.ts";
import { completeModels, createCommands } from "./commands.ts";
import { readPressForm } from "./forms.ts";
import { createPictureForms } from "./imagine-form.ts";
import { readPersonaForm, toPersonaEvent } from "./persona-form.ts";
import { readReason } from "./reason-form.ts";
import { readSchedule } from "./schedule-form.ts";
import { createShortcuts } from "./shortcuts.ts";
import { type InteractionEventDeps, isOnPrivate, type PendingInteraction, toActionEvent } from "./user-action.ts";

export interface InteractionsDeps
  extends InteractionEventDeps,
    TakeDeps,
    Pick<DiscordAdapterOptions, "commands" | "listModels" | "readPersona" | "scheduleForm" | "imagine"> {}

/** Handles everything that people do with the bot on Discord, except writing messages. */
export function createInteractions(given: InteractionsDeps): (interaction: APIInteraction) => Promise<void> {
  const { acknowledge } = given;
  const take = createTake(given);
  const forms = given.imagine && createPictureForms({ ...given, menu: given.imagine });
  const deps = { ...given, take, forms };
  const [onCommand, onShortcut, onButton] = [createCommands(deps), createShortcuts(deps), createButtons(deps)];

  async function onForm(interaction: APIModalSubmitInteraction): Promise<void> {
    const press = readPressForm(interaction);
    const action = press?.action;
    if (press !== undefined && (action === "bad" || action === "reschedule")) {
      const pending: PendingInteraction = { interaction, isPrivate: true, isPress: true };
      return take(pending, "press", () => ({
        ...toActionEvent(pending, interaction, { ...press, action }, deps),
        ...(action === "bad" ? readReason(interaction) : readSchedule(interaction)),
      }));
    }
    const persona = readPersonaForm(interaction);
    if (persona !== undefined) {
      const submitted: PendingInteraction = { interaction, isPrivate: true };
      return take(submitted, "answer", () => toPersonaEvent(submitted, persona, deps));
    }
    const toEvent = forms?.read(interaction);
    if (toEvent === undefined) {
      await acknowledge(interaction, say("This form no longer works. Open it again."));
      return;
    }
    const pending: PendingInteraction = { interaction, isPrivate: isOnPrivate(interaction) };
    await take(pending, "answer", () => toEvent(pending));
  }

  return async (interaction) => {
    if (interaction.type === InteractionType.ApplicationCommandAutocomplete) {
      const list = (interaction.data.name === IMAGINE ? deps.imagine : undefined)?.listModels ?? deps.listModels;
      const data = { choices: await completeModels(interaction, list) };
      await acknowledge(interaction, { type: InteractionResponseType.ApplicationCommandAutocompleteResult, data });
    } else if (interaction.type === InteractionType.MessageComponent) {
      await onButton(interaction);
    } else if (interaction.type === InteractionType.ModalSubmit) {
      await onForm(interaction);
    } else if (interaction.type === InteractionType.ApplicationCommand) {
      if (interaction.data.type === ApplicationCommandType.ChatInput) {
        await onCommand(interaction as APIChatInputApplicationCommandInteraction);
      } else if (interaction.data.type === ApplicationCommandType.Message) {
        await onShortcut(interaction as APIMessageApplicationCommandInteraction);
      }
    }
  };
}
