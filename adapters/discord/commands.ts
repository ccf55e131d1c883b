import {
  type APIApplicationCommand,
  ApplicationCommandOptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  InteractionContextType,
  Routes,
} from "discord.js";
import type { Logger } from "pino";
import type { Api } from "./api.ts";

export interface CommandHelp {
  name: string;
  description: string;
}

export const ASK = "ask";
const MODEL = "model";
/** In the menu of a message. */
const ASK_ABOUT = "Ask about this";

const CALL_MS = 15_000;
const MAX_DESCRIPTION = 100;
const MAX_PROMPT = 6_000;

type Option = Record<string, unknown>;

/** What Discord is told of a command. Fields that are absent have Discord's default. */
export interface Definition {
  type: ApplicationCommandType;
  name: string;
  description: string;
  options: Option[];
  default_member_permissions: string | null;
  contexts: InteractionContextType[];
  integration_types: ApplicationIntegrationType[];
}

const WORDS: Option = {
  type: ApplicationCommandOptionType.String,
  name: "text",
  description: "What comes after the command",
  max_length: MAX_PROMPT,
};
const OPTIONS: Readonly<Record<string, Option[]>> = {
  [ASK]: [
    {
      type: ApplicationCommandOptionType.String,
      name: "prompt",
      description: "Your question",
      required: true,
      max_length: MAX_PROMPT,
    },
    { type: ApplicationCommandOptionType.Attachment, name: "image", description: "A picture or a file to look at" },
    { type: ApplicationCommandOptionType.Boolean, name: "private", description: "Only you see the answer" },
  ],
  [MODEL]: [
    {
      type: ApplicationCommandOptionType.String,
      name: "name",
      description: "The model for this channel",
      autocomplete: true,
      max_length: 100,
    },
  ],
  // These take nothing.
  help: [],
  quiet: [],
  forget: [],
  export: [],
};

/** The commands as Discord is told them: `/ask`, the given ones, and the one in the menu of a message. */
export function toDefinitions(commands: readonly CommandHelp[]): Definition[] {
  const all = [{ name: ASK, description: "Asks a question." }, ...commands.filter(({ name }) => name !== ASK)];
  const base = {
    default_member_permissions: null,
    contexts: [InteractionContextType.Guild, InteractionContextType.BotDM],
    integration_types: [ApplicationIntegrationType.GuildInstall],
  };
  return [
    ...all.map(({ name, description }) => ({
      ...base,
      type: ApplicationCommandType.ChatInput,
      name,
      description: Array.from(description).slice(0, MAX_DESCRIPTION).join(""),
      options: OPTIONS[name] ?? [WORDS],
    })),
    { ...base, type: ApplicationCommandType.Message, name: ASK_ABOUT, description: "", options: [] },
  ];
}

export interface Registration {
  api: Api;
  applicationId: string;
  /** Registers for this server alone, where they can be used at once. */
  guildId?: string;
  log: Logger;
}

/** Tells Discord the commands, when it knows others: registering counts against a daily ration. Rejects when it cannot. */
export async function registerCommands(definitions: readonly Definition[], to: Registration): Promise<void> {
  const { api, applicationId, guildId, log } = to;
  const route =
    guildId === undefined
      ? Routes.applicationCommands(applicationId)
      : Routes.applicationGuildCommands(applicationId, guildId);
  const { data } = await api.call({ method: "GET", route }, AbortSignal.timeout(CALL_MS));
  const registered = (data as APIApplicationCommand[]).map((command) => toComparable(command as unknown as Definition));
  const wanted = definitions.map(toComparable);
  if (wanted.toSorted().join("\n") === registered.toSorted().join("\n")) return;
  await api.call({ method: "PUT", route, body: definitions }, AbortSignal.timeout(CALL_MS));
  log.info({ commands: definitions.map(({ name }) => name) }, "The commands were registered with Discord.");
}

/** Discord adds fields, and leaves out those that have their default. */
function toComparable(definition: Definition): string {
  const { type, name, description, options, default_member_permissions: permissions } = definition;
  const { contexts, integration_types: types } = definition;
  const own = (options ?? []).map((option) => [
    ...["type", "name", "description", "max_length"].map((key) => option[key] ?? null),
    ...["required", "autocomplete"].map((key) => option[key] === true),
  ]);
  const sorted = [contexts, types].map((list) => (list ?? []).toSorted((a, b) => a - b));
  return JSON.stringify([
    type ?? ApplicationCommandType.ChatInput,
    name,
    description,
    own,
    permissions ?? null,
    sorted,
  ]);
}
