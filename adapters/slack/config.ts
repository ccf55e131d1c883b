import { z } from "zod";
import type { PlatformVariables } from "../../src/port/module.ts";
import {
  type ConfigProblem,
  type ConfigReading,
  encryptionKey,
  type GivenVariables,
  list,
  needsChars,
  readVariables,
  secret,
  webAddress,
  webAddressText,
} from "../../src/port/variables.ts";
import type { SlackTransport } from "./options.ts";

const MIN_STATE_SECRET_CHARS = 16;
const SIGNING_SECRET = /^[0-9a-f]{32}$/;

const SCHEMAS = {
  SLACK_BOT_TOKEN: token(/^(xoxe\.)?xoxb-/, "a bot token (xoxb-…), found under OAuth & Permissions").optional(),
  SLACK_APP_TOKEN: token(/^xapp-/, "an app-level token (xapp-…), found under Basic Information").optional(),
  SLACK_SIGNING_SECRET: secret()
    .refine((text) => !/^x(ox|app-)/.test(text), "must be the signing secret from Basic Information, not a token")
    .optional(),
  SLACK_API_URL: webAddressText()
    .refine((url) => url.endsWith("/api/"), "must end in /api/, with the slash")
    .optional(),
  SLACK_CLIENT_ID: z
    .string()
    .regex(/^\d+\.\d+$/, "must be the client id from Basic Information: two numbers separated by a dot")
    .optional(),
  SLACK_CLIENT_SECRET: secret().optional(),
  SLACK_STATE_SECRET: secret().min(MIN_STATE_SECRET_CHARS, needsChars(MIN_STATE_SECRET_CHARS)).optional(),
  SLACK_ALLOWED_BOTS: list(/^[BUWA][A-Z0-9]+$/, "must be ids of bots (B…) or their users (U…), separated by commas"),
};

const SHARED = { ENCRYPTION_KEY: encryptionKey().optional(), PUBLIC_URL: webAddress().optional() };

type Values = z.infer<z.ZodObject<typeof SCHEMAS & typeof SHARED>>;

export const VARIABLES: PlatformVariables = {
  schemas: SCHEMAS,
  entries: [
    {
      names: ["SLACK_BOT_TOKEN"],
      unset: "Slack is off",
      meaning:
        "*Bot User OAuth Token* under *OAuth & Permissions*, `xoxb-…`. Needs one of the next two; see docs/slack.md.",
    },
    {
      names: ["SLACK_APP_TOKEN"],
      meaning: "*App-Level Token* under *Basic Information*, `xapp-…`, for Socket Mode.",
    },
    {
      names: ["SLACK_SIGNING_SECRET"],
      meaning: "*Signing Secret* under *Basic Information*, if Slack sends events to `POST /slack/events` instead.",
    },
    {
      names: ["SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET"],
      meaning: "Instead of the bot token, to let several workspaces install the app; docs/slack.md explains it.",
    },
    {
      names: ["SLACK_ALLOWED_BOTS"],
      unset: "none",
      meaning: "Ids of other bots that Palaver answers, `B…` or `U…`, separated by commas.",
    },
    { names: ["SLACK_API_URL"], unset: "Slack's own", meaning: "Base address of the Web API; ends in `/api/`." },
  ],
  secrets: ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET"],
};

/** Lets several workspaces install the bot, at a URL below `publicUrl`. */
export interface SlackOauthConfig {
  clientId: string;
  clientSecret: string;
  stateSecret: string;
  encryptionKey: Uint8Array;
}

export type SlackConfig = {
  apiUrl: string | undefined;
  publicUrl: string | undefined;
  /** The bots whose messages Palaver answers, by their own ids (B…) or by their users' ids (U…). */
  allowedBots: string[];
} & ({ botToken: string; oauth: undefined } | { botToken: undefined; oauth: SlackOauthConfig }) &
  SlackTransport;

export function readConfig(given: GivenVariables): ConfigReading<SlackConfig> {
  const problems = [...findOddSecret(given), ...findConflicts(given).map((what) => ({ what }))];
  return readVariables({ ...SCHEMAS, ...SHARED }, given, toConfig, problems);
}

function toConfig(values: Values): SlackConfig | undefined {
  const { SLACK_BOT_TOKEN: botToken, SLACK_APP_TOKEN: appToken, SLACK_SIGNING_SECRET: signingSecret } = values;
  const oauth = toOauth(values);
  const common = { apiUrl: values.SLACK_API_URL, publicUrl: values.PUBLIC_URL, allowedBots: values.SLACK_ALLOWED_BOTS };
  const access = botToken === undefined ? oauth && { botToken, oauth } : { botToken, oauth: undefined };
  if (access === undefined) return undefined;
  if (appToken !== undefined) return { ...common, ...access, mode: "socket", appToken };
  return signingSecret === undefined ? undefined : { ...common, ...access, mode: "http", signingSecret };
}

function toOauth(values: Values): SlackOauthConfig | undefined {
  const { SLACK_CLIENT_ID: clientId, SLACK_CLIENT_SECRET: clientSecret } = values;
  const { SLACK_STATE_SECRET: stateSecret, ENCRYPTION_KEY: key } = values;
  if (!clientId || !clientSecret || !stateSecret || !key) return undefined;
  return { clientId, clientSecret, stateSecret, encryptionKey: key };
}

/** Finds a secret whose format Slack never uses. A server that imitates Slack at another URL can use any format. */
function findOddSecret({ SLACK_API_URL: apiUrl, SLACK_SIGNING_SECRET: secret }: GivenVariables): ConfigProblem[] {
  if (apiUrl || secret === undefined || SIGNING_SECRET.test(secret)) return [];
  const wanted = "the signing secret from Basic Information, 32 digits from 0 to 9 and a to f";
  return [{ variable: "SLACK_SIGNING_SECRET", what: `must be ${wanted}, not the client secret` }];
}

/** If one of these is set, several workspaces can install the app. */
const OAUTH = ["SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET"];

function findConflicts(given: GivenVariables): string[] {
  const ways = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"].filter((name) => given[name]);
  const oauth = OAUTH.filter((name) => given[name]);
  if (oauth.length > 0) return findOauthConflicts(given, ways, oauth);
  if (given["SLACK_BOT_TOKEN"] && ways.length === 0) {
    return [
      "SLACK_BOT_TOKEN is not enough: set SLACK_APP_TOKEN as well for Socket Mode, or SLACK_SIGNING_SECRET for HTTP.",
    ];
  }
  if (!given["SLACK_BOT_TOKEN"] && ways.length > 0) {
    return [`SLACK_BOT_TOKEN is missing: ${ways.join(" and ")} cannot work without it.`];
  }
  return [];
}

function findOauthConflicts(given: GivenVariables, ways: readonly string[], oauth: readonly string[]): string[] {
  if (given["SLACK_BOT_TOKEN"]) {
    return [`SLACK_BOT_TOKEN is for one workspace and ${oauth.join(", ")} for several: remove one of the two.`];
  }
  const problems: string[] = [];
  const missing = [...OAUTH, "ENCRYPTION_KEY"].filter((name) => !given[name]);
  if (missing.length > 0) {
    const are = missing.length === 1 ? "is" : "are";
    problems.push(`${missing.join(" and ")} ${are} missing: installing in several workspaces needs all four together.`);
  }
  if (ways.length === 0) {
    problems.push("SLACK_APP_TOKEN is missing: set it for Socket Mode, or SLACK_SIGNING_SECRET for HTTP.");
  }
  if (!given["PUBLIC_URL"]) {
    problems.push("PUBLIC_URL is missing: Slack sends people back to this address after they install the app.");
  }
  return problems;
}

/** A token whose prefix shows its kind. A wrong token gets a message that names its kind, if that is known. */
function token(shape: RegExp, wanted: string) {
  return secret().check(({ value, issues }) => {
    if (shape.test(value)) return;
    issues.push({ code: "custom", input: value, message: `must be ${wanted}, but ${describe(value)} was given` });
  });
}

function describe(given: string): string {
  if (/^(xoxe\.)?xoxb-/.test(given)) return "a bot token (xoxb-)";
  if (/^(xoxe\.)?xoxp-/.test(given)) return "a user token (xoxp-)";
  if (given.startsWith("xapp-")) return "an app-level token (xapp-)";
  if (given.startsWith("xoxe-")) return "a refresh token (xoxe-)";
  if (/^xox[a-z]-/.test(given)) return `another kind of token (${given.slice(0, 5)})`;
  return "something else";
}
