import type { APIMessageApplicationCommandInteraction } from "discord.js";
import type { MessageEvent } from "../../../src/port/events.ts";
import { toLine } from "../../../src/text/quote-name.ts";
import { readSeen } from "../hear/wording.ts";
import { toMessageId } from "../ids.ts";
import { USE_AS_REFERENCE } from "../install/slash-commands.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import { type HandlerDeps, say } from "./acknowledgement.ts";
import type { PictureForms } from "./imagine-form.ts";
import {
  type InteractionEventDeps,
  type PendingInteraction,
  placeOf,
  toCommandEvent,
  toQuestion,
} from "./user-action.ts";

export interface ShortcutsDeps extends HandlerDeps, Pick<DiscordAdapterOptions, "commands"> {
  forms: PictureForms | undefined;
}

export function createShortcuts(
  deps: ShortcutsDeps,
): (interaction: APIMessageApplicationCommandInteraction) => Promise<void> {
  const { acknowledge, take, forms, commands } = deps;
  return async (interaction) => {
    if (interaction.data.name === USE_AS_REFERENCE) {
      const isOpen = await forms?.openReference(interaction);
      if (isOpen !== true) await acknowledge(interaction, say("There's no image in this message."));
      return;
    }
    const command = commands.find(({ shortcut }) => shortcut?.title === interaction.data.name);
    if (command !== undefined) {
      const pending: PendingInteraction = { interaction, isPrivate: true };
      return take(pending, "answer", () => toCommandEvent(pending, { name: command.name, text: "" }, deps));
    }
    const pending: PendingInteraction = { interaction, isPrivate: false };
    await take(pending, "answer", () => toAskAboutEvent(pending, interaction, deps));
  };
}

/** Quotes a message of any age, from anyone, perhaps in a channel that the bot cannot read. */
function toAskAboutEvent(
  pending: PendingInteraction,
  { data, guild_id }: APIMessageApplicationCommandInteraction,
  deps: InteractionEventDeps,
): MessageEvent {
  const message = data.resolved.messages[data.target_id];
  if (message === undefined) return toQuestion(pending, deps, "What about this message? (I couldn't read it.)", []);
  const name = message.author.global_name ?? message.author.username;
  const words = readSeen({ ...message, ...(guild_id !== undefined && { guild_id }) }, deps);
  const quoted = words.trim().replace(/^/gm, "> ");
  const text = `Explain or answer this message from ${toLine(name)}:\n${quoted}`;
  const question = toQuestion(pending, deps, text, [], deps.files.toPostedRefs(message));
  return {
    ...question,
    quotes: toMessageId({ channelId: placeOf(pending.interaction).channelId, messageId: message.id }),
  };
}
