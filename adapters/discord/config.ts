import { z } from "zod";
import type { PlatformVariables } from "../../src/port/module.ts";
import {
  type ConfigProblem,
  type ConfigReading,
  choice,
  type GivenVariables,
  list,
  readVariables,
  secret,
  webAddress,
  wholeNumber,
} from "../../src/port/variables.ts";
import type { ThreadMode } from "./options.ts";

/** The form of Discord's tokens: the application's id in base64, followed by two more parts. */
const TOKEN = /^[MNO][\w-]{22,27}\.[\w-]+\.[\w-]+$/;

const SCHEMAS = {
  DISCORD_TOKEN: secret()
    .refine((text) => !/^Bot\b/i.test(text), 'must be the token without "Bot" before it')
    .refine((text) => !/^\d+$/.test(text), "must be the bot's token, not the application id")
    .refine((text) => !/^[0-9a-f]{64}$/i.test(text), "must be the bot's token, not the public key")
    .optional(),
  // Removes the API version from the URL, because the library adds it.
  DISCORD_API_URL: webAddress()
    .transform((url) => url.replace(/\/v\d+$/, ""))
    .optional(),
  DISCORD_THREADS: choice("auto", "on", "off").default("auto"),
  DISCORD_GUILD_ID: z
    .string()
    .regex(/^\d{17,20}$/, "must be a server's id: 17 to 20 digits")
    .optional(),
  SHARDS: list(/^\d{1,5}$/, "must be shard numbers separated by commas, like 0,1").transform((ids) => ids.map(Number)),
  SHARD_COUNT: wholeNumber(1, 99_999).optional(),
};

export const VARIABLES: PlatformVariables = {
  schemas: SCHEMAS,
  entries: [
    {
      names: ["DISCORD_TOKEN"],
      unset: "Discord is off",
      meaning: "The bot's token, under *Bot* in the developer portal; see docs/discord.md.",
    },
    {
      names: ["DISCORD_THREADS"],
      meaning:
        "When a mention in a channel opens a thread: always (`on`), never (`off`), or while another answer is growing there (`auto`).",
    },
    {
      names: ["DISCORD_GUILD_ID"],
      unset: "everywhere",
      meaning: "ID of the only server where the bot's commands exist.",
    },
    {
      names: ["SHARDS", "SHARD_COUNT"],
      unset: "as many as Discord recommends, for all processes together",
      meaning: "The shards of this process and the total number, such as `0,1` and `4`.",
    },
    {
      names: ["DISCORD_API_URL"],
      unset: "Discord's own",
      meaning: "Base of the REST API, without the version.",
    },
  ],
  secrets: ["DISCORD_TOKEN"],
};

export interface DiscordConfig {
  token: string;
  /** The base URL without the version and without a trailing slash. */
  apiUrl: string | undefined;
  threads: ThreadMode;
  /** The bot registers its commands only on this server. They work there at once. Undefined means all servers. */
  guildId: string | undefined;
  /** Undefined: this process runs as many shards as Discord recommends. */
  shards: { ids: number[]; count: number } | undefined;
}

export function readConfig(given: GivenVariables): ConfigReading<DiscordConfig> {
  return readVariables(SCHEMAS, given, toConfig, [...findOddToken(given), ...findShardConflicts(given)]);
}

function toConfig(values: z.infer<z.ZodObject<typeof SCHEMAS>>): DiscordConfig | undefined {
  if (values.DISCORD_TOKEN === undefined) return undefined;
  return {
    token: values.DISCORD_TOKEN,
    apiUrl: values.DISCORD_API_URL,
    threads: values.DISCORD_THREADS,
    guildId: values.DISCORD_GUILD_ID,
    shards: values.SHARD_COUNT === undefined ? undefined : { ids: values.SHARDS, count: values.SHARD_COUNT },
  };
}

/** Finds a token that does not look like Discord's. A simulator at another address accepts any token. */
function findOddToken({ DISCORD_API_URL: apiUrl, DISCORD_TOKEN: token }: GivenVariables): ConfigProblem[] {
  if (apiUrl || token === undefined || TOKEN.test(token)) return [];
  const wanted = "the bot's token (three parts separated by dots)";
  return [{ variable: "DISCORD_TOKEN", what: `must be ${wanted}, found in the Discord Developer Portal under Bot` }];
}

function findShardConflicts({ SHARDS: shards, SHARD_COUNT: count }: GivenVariables): ConfigProblem[] {
  if (!shards !== !count) {
    const missing = shards ? "SHARD_COUNT" : "SHARDS";
    return [{ what: `${missing} is missing: set both, or neither to let Discord choose the number of shards.` }];
  }
  const isTooHigh = (shards ?? "").split(",").some((id) => Number(id) >= Number(count));
  if (!shards || !isTooHigh) return [];
  return [{ what: "Every number in SHARDS must be below SHARD_COUNT: 4 shards are 0, 1, 2 and 3." }];
}
