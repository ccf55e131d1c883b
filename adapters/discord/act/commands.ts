import type {
  APIApplicationCommandAutocompleteInteraction,
  APIChatInputApplicationCommandInteraction,
} from "discord.js";
import { InteractionResponseType } from "discord.js";
import { askWithin } from "../../../src/concurrency/deadlines.ts";
import type { ImagineOptions, ListModels } from "../../../src/port/catalogue.ts";
import type { MessageEvent } from "../../../src/port/events.ts";
import { toWords } from "../hear/wording.ts";
import { ASK, IMAGINE, imageNames, MAX_IMAGES, MODEL, MODEL_NAME, PERSON, PERSONA } from "../install/slash-commands.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import type { HandlerDeps } from "./acknowledgement.ts";
import { FORM_MS } from "./forms.ts";
import { type PictureRequest, toImagineEvent } from "./imagine-form.ts";
import { toPersonaForm } from "./persona-form.ts";
import {
  type InteractionEventDeps,
  type PendingInteraction,
  toActor,
  toCommandEvent,
  toQuestion,
} from "./user-action.ts";

const CHOSEN = ["ratio", "size", "count", "model", "spoiler"] as const satisfies (keyof ImagineOptions)[];

export type CommandsDeps = HandlerDeps & Pick<DiscordAdapterOptions, "readPersona" | "imagine">;

/** Handles slash commands. Their answers are private, except those of `/ask` and `/imagine`. */
export function createCommands(
  deps: CommandsDeps,
): (interaction: APIChatInputApplicationCommandInteraction) => Promise<void> {
  return async (interaction) => {
    const { name } = interaction.data;
    const options = readOptions(interaction);
    if (name === PERSONA && Object.keys(options).length === 0) {
      const read = async () => (await deps.readPersona?.(toActor(interaction, deps).reply)) ?? {};
      const data = toPersonaForm(await askWithin(FORM_MS, read, {}));
      await deps.acknowledge(interaction, { type: InteractionResponseType.Modal, data });
      return;
    }
    const isImagine = name === IMAGINE && deps.imagine !== undefined;
    const isPrivate = name === ASK || isImagine ? options["private"] === true : true;
    const pending: PendingInteraction = { interaction, isPrivate };
    await deps.take(pending, "answer", () => {
      if (isImagine) return toImagineEvent(pending, toPictureRequest(interaction, deps), deps);
      if (name === ASK) return toAskEvent(pending, interaction, deps);
      return toCommandEvent(pending, { name, text: toGivenText(interaction) }, deps);
    });
  };
}

function toAskEvent(
  pending: PendingInteraction,
  interaction: APIChatInputApplicationCommandInteraction,
  deps: InteractionEventDeps,
): MessageEvent {
  const options = readOptions(interaction);
  const file = interaction.data.resolved?.attachments?.[String(options["image"])];
  const mentions = Object.values(interaction.data.resolved?.users ?? {});
  const prompt = toWords(String(options["prompt"] ?? ""), { mentions, guild_id: interaction.guild_id }, deps);
  return toQuestion(pending, deps, prompt, file === undefined ? [] : [file]);
}

function toGivenText(interaction: APIChatInputApplicationCommandInteraction): string {
  const isModel = interaction.data.name === MODEL;
  const { [PERSON]: person, ...options } = readOptions(interaction);
  const values = Object.entries(options).map(([name, value]) =>
    // Writes an option as users of other platforms type it.
    isModel && name !== MODEL_NAME ? `--${name} ${value}` : String(value),
  );
  // Puts the person first, even if the user filled in the fields in another order.
  if (person !== undefined) values.unshift(`person:${person}`);
  return values.join(" ").trim();
}

function toPictureRequest(
  interaction: APIChatInputApplicationCommandInteraction,
  deps: InteractionEventDeps,
): PictureRequest {
  const given = readOptions(interaction);
  const files = interaction.data.resolved?.attachments ?? {};
  const options = CHOSEN.flatMap((name) => (given[name] === undefined ? [] : [[name, String(given[name])] as const]));
  const images = imageNames(MAX_IMAGES).flatMap((name) => files[String(given[name])] ?? []);
  return {
    prompt: String(given["prompt"] ?? ""),
    options: Object.fromEntries(options),
    attachments: deps.files.toLinkedRefs(images),
  };
}

/** Returns the options' values by name. The bot's commands have no sub-commands. */
function readOptions({ data }: APIChatInputApplicationCommandInteraction): Record<string, string | number | boolean> {
  return Object.fromEntries((data.options ?? []).map((option) => [option.name, "value" in option ? option.value : ""]));
}

const LIST_MS = 1_500;
const MAX_CHOICES = 25;
const MAX_CHARS = 100;

/** Suggests models that match the text so far. Suggests none if the list does not arrive in time. Never rejects. */
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
