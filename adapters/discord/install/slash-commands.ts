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
import type { CommandField, CommandHelp, ImagineMenu } from "../../../src/port/catalogue.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";

export const ASK = "ask";
export const IMAGINE = "imagine";
export const MODEL = "model";
export const PERSONA = "persona";
/** The field of `/model` that contains the model's name instead of an option. */
export const MODEL_NAME = "name";
export const PERSON = "person";
const ASK_ABOUT = "Ask about this";
export const USE_AS_REFERENCE = "Use as reference";
/** The number of image fields, because Discord has no field for several files. */
export const MAX_IMAGES = 8;

const CALL_MS = 15_000;
/** Pauses before each retry if Discord is unreachable or does not respond properly. */
const RETRY_PAUSES_MS = [500, 5_000, 30_000, 120_000];
const MAX_DESCRIPTION = 100;
const MAX_PROMPT = 6_000;
const MAX_PICTURE_PROMPT = 4_000;
const MAX_CHOICES = 25;

type Option = Record<string, unknown>;

/** A command as Discord stores it. A missing field has Discord's default. */
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
  description: "The text after the command",
  max_length: MAX_PROMPT,
};
const ASK_OPTIONS: Option[] = [
  {
    type: ApplicationCommandOptionType.String,
    name: "prompt",
    description: "Your question",
    required: true,
    max_length: MAX_PROMPT,
  },
  { type: ApplicationCommandOptionType.Attachment, name: "image", description: "An image or file to look at" },
  { type: ApplicationCommandOptionType.Boolean, name: "private", description: "Show the answer only to you" },
];

function toOption({ name, description, kind, choices, maxChars, isSuggested }: CommandField): Option {
  return {
    type: kind === "person" ? ApplicationCommandOptionType.User : ApplicationCommandOptionType.String,
    name,
    description,
    ...(choices && { choices }),
    ...(maxChars !== undefined && { max_length: maxChars }),
    ...(isSuggested && { autocomplete: true }),
  };
}

export function imageNames(most: number): string[] {
  return Array.from({ length: Math.min(most, MAX_IMAGES) }, (_, index) => `image${index + 1}`);
}

/** The commands to register: `/ask`, the given ones, `/imagine`, and those in the menu of a message. */
export function toDefinitions(commands: readonly CommandHelp[], menu?: ImagineMenu): Definition[] {
  const own: CommandHelp[] = [{ name: ASK, description: "Ask a question." }];
  if (menu !== undefined) own.push({ name: IMAGINE, description: "Create an image from your text and images." });
  const names = new Set(own.map(({ name }) => name));
  const all = [...own, ...commands.filter(({ name }) => !names.has(name))];
  const base = {
    default_member_permissions: null,
    contexts: [InteractionContextType.Guild, InteractionContextType.BotDM],
    integration_types: [ApplicationIntegrationType.GuildInstall],
  };
  const toOptions = ({ name, fields }: CommandHelp): Option[] => {
    if (name === ASK) return ASK_OPTIONS;
    return name === IMAGINE && menu !== undefined ? toImagineOptions(menu) : (fields?.map(toOption) ?? [WORDS]);
  };
  return [
    ...all.map((command) => ({
      ...base,
      type: ApplicationCommandType.ChatInput,
      name: command.name,
      description: truncate(command.description, MAX_DESCRIPTION),
      options: toOptions(command),
    })),
    ...[
      ASK_ABOUT,
      ...(menu === undefined ? [] : [USE_AS_REFERENCE]),
      ...commands.flatMap(({ shortcut }) => shortcut?.title ?? []),
    ].map((name) => {
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
      description: "What the image should show",
      required: true,
      max_length: MAX_PICTURE_PROMPT,
    },
    ...imageNames(maxReferences).map((name, index) => {
      return { type: Attachment, name, description: `Reference image ${index + 1}`, file_types: ["image"] };
    }),
    { ...choose(ratios), name: "ratio", description: "Aspect ratio" },
    { ...choose(sizes), name: "size", description: "Image size" },
    { type: Integer, name: "count", description: "How many images", min_value: 1, max_value: maxCount },
    { type: Text, name: "model", description: "The image model", autocomplete: true, max_length: 100 },
    { type: YesOrNo, name: "private", description: "Show the image only to you" },
    { type: YesOrNo, name: "spoiler", description: "Hide the image until someone clicks it" },
  ];
}

export interface Registration {
  api: Api;
  applicationId: string;
  /** The bot registers its commands only on this server. They work there at once. Undefined means all servers. */
  guildId?: string;
  log: Logger;
}

/**
 * Registers only commands that differ from Discord's, because a daily limit counts each registration. Rejects if
 * Discord refuses, if the calls fail for minutes, or with the reason of `signal`.
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
  log.info({ commands: definitions.map(({ name }) => name) }, "Registered the commands with Discord.");
}

/** HTTP statuses of a server that cannot list commands. */
const NO_LIST = new Set([404, 405, 501]);

/** Undefined if the server cannot list the commands. The bot then registers them anyway. */
async function readRegistered(api: Api, route: RouteLike): Promise<string[] | undefined> {
  try {
    const listed = await read<unknown>(api, route, AbortSignal.timeout(CALL_MS));
    return Array.isArray(listed) ? listed.map((command: Definition) => toComparable(command)) : undefined;
  } catch (error) {
    if (error instanceof ApiError && NO_LIST.has(error.status)) return undefined;
    throw error;
  }
}

/** Discord adds fields, and omits fields with their default. */
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
