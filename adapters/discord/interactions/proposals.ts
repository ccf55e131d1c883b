import type { APIApplicationCommandAutocompleteInteraction } from "discord.js";
import type { ListModels } from "../../../src/port/catalogue.ts";
import { askWithin } from "./deadline.ts";

/** Within Discord's three seconds, with time left for the way. */
const LIST_MS = 1_500;
const MAX_CHOICES = 25;
const MAX_CHARS = 100;

/** Proposes models for what somebody has typed so far: none when the list is not there in time. Never rejects. */
export async function proposeModels(
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
