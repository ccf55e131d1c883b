import {
  ApplicationCommandOptionType,
  ApplicationCommandType,
  ApplicationIntegrationType,
  InteractionContextType,
  type RouteLike,
  Routes,
} from "discord.js";
import type { Logger } from "pino";
import { retry } from "../../../src/concurrency/retry.ts";
import type { CommandHelp, ImagineMenu } from "../../../src/port/catalogue.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";

export const ASK = "ask";
export const IMAGINE = "imagine";
export const MODEL = "model";
export const PERSONA = "persona";
/** The field of `/model` that is no option of its text. */
export const MODEL_NAME = "name";
/** The field of `/forget` and `/export` that names another person. */
export const PERSON = "person";
/** In the menu of a message. */
const ASK_ABOUT = "Ask about this";
export const USE_AS_REFERENCE = "Use as reference";
/** Fields for pictures: Discord cannot be given one field that takes several. */
export const MAX_IMAGES = 8;

const CALL_MS = 15_000;
/** Before each further try, when Discord was out of reach or did not answer properly. */
const RETRY_PAUSES_MS = [500, 5_000, 30_000, 120_000];
const MAX_DESCRIPTION = 100;
const MAX_PROMPT = 6_000;
const MAX_PICTURE_PROMPT = 4_000;
const MAX_CHOICES = 25;

type Option = Record<string, unknown>;

/** A command as it is registered. Fields that are absent have Discord's default. */
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
const PERSON_OF_ADMIN: Option = {
  type: ApplicationCommandOptionType.User,
  name: PERSON,
  description: "For admins: whose data, if not your own",
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
  forget: [
    PERSON_OF_ADMIN,
    {
      type: ApplicationCommandOptionType.String,
      name: "what",
      description: "What I am to forget",
      choices: [
        { name: "This conversation", value: "conversation" },
        { name: "Everything about me", value: "me" },
        { name: "Everything about me, for good", value: "me for good" },
        { name: "Everything about that person, for good (admins)", value: "for good" },
      ],
    },
  ],
  [MODEL]: [
    {
      type: ApplicationCommandOptionType.String,
      name: MODEL_NAME,
      description: "The model for this channel, or default",
      autocomplete: true,
      max_length: 100,
    },
    ...[
      ["temperature", "How freely it answers: 0 to 2, or default"],
      ["length", "The greatest length of an answer in tokens, or default"],
      ["context", "How many of the channel's last messages a question sees: 0 to 100, or default"],
    ].map(([name, description]) => ({ type: ApplicationCommandOptionType.String, name, description, max_length: 10 })),
    toChoice("format", "The form of an answer", ["text", "json"]),
    toChoice("thinking", "Is what the model thinks shown before its answer?", ["shown", "hidden"]),
  ],
  listen: [toChoice("what", "Do I answer everything in this channel?", ["on", "off"])],
  // These take nothing.
  help: [],
  quiet: [],
  stop: [],
  export: [PERSON_OF_ADMIN],
};

function toChoice(name: string, description: string, values: readonly string[]): Option {
  const choices = values.map((value) => ({ name: value, value }));
  return { type: ApplicationCommandOptionType.String, name, description, choices };
}

/** Names of the fields for pictures, the first one first. */
export function imageNames(most: number): string[] {
  return Array.from({ length: Math.min(most, MAX_IMAGES) }, (_, index) => `image${index + 1}`);
}

/** The commands as Discord is told them: `/ask`, the given ones, `/imagine`, and those in the menu of a message. */
export function toDefinitions(commands: readonly CommandHelp[], menu?: ImagineMenu): Definition[] {
  const own: CommandHelp[] = [{ name: ASK, description: "Asks a question." }];
  if (menu !== undefined) own.push({ name: IMAGINE, description: "Draws a picture from your words and pictures." });
  const names = new Set(own.map(({ name }) => name));
  const all = [...own, ...commands.filter(({ name }) => !names.has(name))];
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
      description: truncate(description, MAX_DESCRIPTION),
      options: name === IMAGINE && menu !== undefined ? toImagineOptions(menu) : (OPTIONS[name] ?? [WORDS]),
    })),
    ...[ASK_ABOUT, ...(menu === undefined ? [] : [USE_AS_REFERENCE])].map((name) => {
      return { ...base, type: ApplicationCommandType.Message, name, description: "", options: [] };
    }),
  ];
}

function toImagineOptions({ ratios, sizes, maxCount, maxReferences }: ImagineMenu): Option[] {
  const { String: Text, Integer, Boolean: YesOrNo, Attachment } = ApplicationCommandOptionType;
  const choose = (values: readonly string[]) => ({
    type: Text,
    choices: values.slice(0, MAX_CHOICES).map((value) => ({ name: value, value })),
  });
  return [
    {
      type: Text,
      name: "prompt",
      description: "What the picture should show",
      required: true,
      max_length: MAX_PICTURE_PROMPT,
    },
    ...imageNames(maxReferences).map((name, index) => {
      return { type: Attachment, name, description: `Picture ${index + 1} to draw from`, file_types: ["image"] };
    }),
    { ...choose(ratios), name: "ratio", description: "Width to height" },
    { ...choose(sizes), name: "size", description: "How large" },
    { type: Integer, name: "count", description: "How many pictures", min_value: 1, max_value: maxCount },
    { type: Text, name: "model", description: "The model that draws", autocomplete: true, max_length: 100 },
    { type: YesOrNo, name: "private", description: "Only you see the picture" },
    { type: YesOrNo, name: "spoiler", description: "Covered until somebody wants to see it" },
  ];
}

export interface Registration {
  api: Api;
  applicationId: string;
  /** Registers for this server alone, where they can be used at once. */
  guildId?: string;
  log: Logger;
}

/**
 * Tells Discord the commands, when it knows others: registering counts against a daily ration. Rejects when that is
 * refused or cannot be done for minutes, and with the reason of `signal`.
 */
export async function registerCommands(
  definitions: readonly Definition[],
  to: Registration,
  signal: AbortSignal,
): Promise<void> {
  const mayPass = (error: unknown) => isUncertain(error) || (error instanceof ApiError && error.status === 429);
  await retry(() => registerOnce(definitions, to), { pausesMs: RETRY_PAUSES_MS, mayPass, isIdle: true }, signal);
}

async function registerOnce(definitions: readonly Definition[], to: Registration): Promise<void> {
  const { api, applicationId, guildId, log } = to;
  const route =
    guildId === undefined
      ? Routes.applicationCommands(applicationId)
      : Routes.applicationGuildCommands(applicationId, guildId);
  const registered = await readRegistered(api, route);
  const wanted = definitions.map(toComparable);
  if (wanted.toSorted().join("\n") === registered?.toSorted().join("\n")) return;
  await api.call({ method: "PUT", route, body: definitions }, AbortSignal.timeout(CALL_MS));
  log.info({ commands: definitions.map(({ name }) => name) }, "The commands were registered with Discord.");
}

/** Statuses with which a server says that it lists no commands. */
const NO_LIST = new Set([404, 405, 501]);

/** Undefined where they are not listed, which is no reason not to have them. */
async function readRegistered(api: Api, route: RouteLike): Promise<string[] | undefined> {
  try {
    const listed = await read<unknown>(api, route, AbortSignal.timeout(CALL_MS));
    return Array.isArray(listed) ? listed.map((command: Definition) => toComparable(command)) : undefined;
  } catch (error) {
    if (error instanceof ApiError && NO_LIST.has(error.status)) return undefined;
    throw error;
  }
}

/** Discord adds fields, and leaves out those that have their default. */
function toComparable(definition: Definition): string {
  const { type, name, description, options, default_member_permissions: permissions } = definition;
  const { contexts, integration_types: types } = definition;
  const own = (options ?? []).map((option) => [
    ...["type", "name", "description", "max_length", "min_value", "max_value"].map((key) => option[key] ?? null),
    ...["required", "autocomplete"].map((key) => option[key] === true),
    (option["choices"] as { value: unknown }[] | undefined)?.map(({ value }) => value) ?? [],
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
