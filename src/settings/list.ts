import { z } from "zod";
import { answerOptions, describeOptions } from "./answer-options.ts";
import { LISTENS } from "./listens.ts";
import type { Setting } from "./setting.ts";
import { TIMEZONE } from "./timezone.ts";

function setting<Value>(schema: z.ZodType<Value>, describe: (value: Value) => string): Setting<Value> {
  return { schema, describe };
}

const all = {
  model: setting(z.string(), (model) => `Model: ${model}`),
  options: setting(answerOptions, (options) => `Options: ${describeOptions(options)}`),
  /** Replaces the configured system prompt. */
  persona: setting(z.string(), (persona) => `Persona: ${persona.replaceAll("\n", "\n  ")}`),
  /** Names of the tool servers that are switched off. */
  serversOff: setting(z.array(z.string()), (names) => `Tool servers switched off: ${names.join(", ")}`),
  /** Prompts that the bot suggests at the start of a conversation. Absent: the default prompts. */
  prompts: setting(z.array(z.string()), (prompts) => `Suggests: ${prompts.join(" | ")}`),
  listens: LISTENS,
  timezone: TIMEZONE,
};

export type SettingName = keyof typeof all;
export type SettingValues = { [Name in SettingName]: z.infer<(typeof all)[Name]["schema"]> };

export type Stored = Partial<SettingValues>;

/** All settings of a channel by their stored names, in the dashboard's order. */
export const SETTINGS: { [Name in SettingName]: Setting<SettingValues[Name]> } = all;
export const SETTING_NAMES: readonly SettingName[] = Object.keys(all) as SettingName[];

export function describeSettings(stored: Stored): string[] {
  return SETTING_NAMES.flatMap((name) => describeSetting(name, stored[name]));
}

function describeSetting<Name extends SettingName>(name: Name, value: SettingValues[Name] | undefined): string[] {
  return value === undefined ? [] : [SETTINGS[name].describe(value)];
}
