import { isIPv6 } from "node:net";
import { z } from "zod";
import { type ExtraBody, readExtraFields, readModelFields } from "../gateway/extra-body.ts";
import type { ImageApi } from "../gateway/image-ways.ts";
import { DEFAULT_MCP_CONFIG, type McpServerConfig, type ReadText, readMcpFile } from "./mcp-servers.ts";
import { similarNames } from "./misspelling.ts";
import { type Policy, type PolicySettings, readPolicyFile } from "./policy/policy-file.ts";
import { readBoundedText } from "./read-text.ts";
import { findConflicts, findOddForms, type GivenVariables, isPageOn } from "./rules.ts";
import { variables } from "./variables.ts";

/** Every variable there is, in the order of the documentation. */
export const CONFIG_VARIABLES: readonly string[] = Object.keys(variables);

interface GatewayModels {
  chatModel: string;
  /** Absent: pictures are off. */
  imageModel: string | undefined;
  /** Undefined: each model's own is found out. */
  imageApi: ImageApi | undefined;
  /** In lower case. */
  imageKeyHeader: string | undefined;
  /** Sent with every call of the first gateway. */
  headers: Readonly<Record<string, string>> | undefined;
  systemPrompt: string;
  extraBody: ExtraBody;
  fallback: FallbackConfig;
}

/** The model and the gateway to ask while the first is down or at its limit. */
export interface FallbackConfig {
  model: string | undefined;
  gateway: { baseUrl: string; apiKey: string } | undefined;
}

/** Without a base URL the embedded sandbox gateway answers, and the models are its own. */
export type GatewayConfig = GatewayModels &
  ({ baseUrl: string; apiKey: string } | { baseUrl: undefined; apiKey: undefined });

/** Lets several workspaces install the bot, at an address below `publicUrl`. */
export interface SlackOauthConfig {
  clientId: string;
  clientSecret: string;
  stateSecret: string;
  /** 32 bytes: the tokens of the workspaces are encrypted with it. */
  encryptionKey: Uint8Array;
}

interface SlackCommon {
  apiUrl: string | undefined;
  /** Bots that are answered: their own ids (B…), or those of their users (U…). */
  allowedBots: string[];
}

/** One workspace, whose token is given, or all that install the app. */
export type SlackConfig = SlackCommon &
  ({ botToken: string; oauth: undefined } | { botToken: undefined; oauth: SlackOauthConfig }) &
  ({ mode: "socket"; appToken: string } | { mode: "http"; signingSecret: string });

export interface DiscordConfig {
  token: string;
  /** Without the version and without a slash at the end. */
  apiUrl: string | undefined;
  threads: "auto" | "on" | "off";
  /** The commands are registered for this server alone, where they can be used at once. */
  guildId: string | undefined;
  /** The shards of this process; undefined: all that Discord recommends. */
  shards: { ids: number[]; count: number } | undefined;
}

export interface LocalChatConfig {
  enabled: boolean;
  password: string | undefined;
  /** Host names that browsers may ask for besides loopback ones, in lower case and without a port. */
  allowedHosts: string[];
}

/** At least one of the two ways in. */
export interface AdminConfig {
  password: string | undefined;
  /** Proxies that know who asks, and the header in which they say so, in lower case. */
  proxy: { networks: string[]; userHeader: string } | undefined;
  /** Host names that browsers may ask for besides loopback ones, in lower case and without a port. */
  allowedHosts: string[];
}

export interface LimitsConfig {
  historyTtlMs: number;
  historyMaxMessages: number;
  historyMaxTokens: number;
  /** Earlier messages that a question in a channel brings along; 0: none. */
  contextMessages: number;
  maxConcurrentTurns: number;
  shutdownGraceMs: number;
  /** Most reference pictures of one drawing. */
  maxReferences: number;
}

/** `ingress` hears the platforms and stores events; `worker` answers them; `all` does both. */
type Role = "all" | "ingress" | "worker";

export interface Config {
  gateway: GatewayConfig;
  slack: SlackConfig | undefined;
  discord: DiscordConfig | undefined;
  localChat: LocalChatConfig;
  /** One person chats at the terminal, and no platform is connected. */
  consoleChat: boolean;
  redisUrl: string | undefined;
  role: Role;
  dataDir: string;
  host: string;
  port: number;
  /** Without a slash at the end. */
  publicUrl: string | undefined;
  /** Lets read `/metrics`; undefined: this machine alone may. */
  metricsToken: string | undefined;
  /** The dashboard; undefined: there is none. */
  admin: AdminConfig | undefined;
  /** Keys of the links under which the gateway fetches pictures: the first signs, all verify. Empty: one is made. */
  relaySecrets: string[];
  /** 32 bytes: tokens that are kept are sealed with it; undefined: those of tool servers are not kept. */
  encryptionKey: Uint8Array | undefined;
  /** Tools from outside, and the file that names them. */
  mcp: { path: string; servers: readonly McpServerConfig[]; refused: readonly string[] };
  /** Permissions, quotas, prices and models. Without a path there is no policy, and nothing is restricted. */
  policy: { path: string | undefined; policy: Policy };
  /** Hosts whose pages the model may read; empty: none. */
  fetchUrlHosts: string[];
  botName: string;
  /** The answer to a question that is deleted goes with it; else a button offers that. */
  removesWithQuestion: boolean;
  logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  limits: LimitsConfig;
}

/** The environment does not make a configuration. Lists everything that is wrong with it, without any value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const count = problems.length === 1 ? "one problem" : `${problems.length} problems`;
    const lines = problems.map((problem) => `  - ${problem}`);
    super(`The configuration has ${count}:\n${lines.join("\n")}\n.env.example explains every variable.`);
    this.problems = problems;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const schema = z.object(variables);
type Values = z.infer<typeof schema>;

/** A terminal chat runs beside a service of the same folder: on data and a port of its own, and it shows no log. */
const CONSOLE_DEFAULTS = [
  ["DATA_DIR", "./data/console"],
  ["PORT", "0"],
  ["LOG_LEVEL", "error"],
] as const;

const WILDCARD_HOSTS = ["0.0.0.0", "::", "[::]"];

/** Reads the configuration and the files that it names. Throws one `ConfigError` with every problem. */
export function readConfig(env: Environment, readText: ReadText = readBoundedText): Config {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const trimmed = value?.trim();
    if (trimmed) given[name] = trimmed;
  }
  if (given["CONSOLE_CHAT"] === "on") for (const [name, value] of CONSOLE_DEFAULTS) given[name] ??= value;
  const parsed = schema.safeParse(given);
  const issues = (parsed.error?.issues ?? []).map(({ path, message }): [string, string] => [String(path[0]), message]);
  // One sentence for each variable: the first.
  const extra = readExtraBody(given, readText);
  const invalid = new Map([...issues, ...findOddForms(given), ...extra.problems].toReversed());
  const problems = [
    ...findMisspelt(given),
    ...[...invalid].toReversed().map(([name, message]) => `${name} ${message}.`),
    ...findConflicts(given),
  ];
  const mcpPath = given["MCP_CONFIG"] ?? DEFAULT_MCP_CONFIG;
  const mcp = readMcpFile(mcpPath, env, readText);
  problems.push(...mcp.problems.map((problem) => `MCP_CONFIG ${problem}.`));
  const policyPath = given["POLICY_FILE"];
  const policy = readPolicy(policyPath, readText);
  problems.push(...policy.problems.map((problem) => `POLICY_FILE ${problem}.`));
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return {
    ...toConfig(parsed.data, extra.body, isPageOn(given)),
    mcp: { path: mcpPath, servers: mcp.servers, refused: mcp.refused },
    policy: { path: policyPath, policy: policy.policy },
  };
}

/** Reads the file of the policy; there need be none. */
function readPolicy(path: string | undefined, readText: ReadText): PolicySettings {
  return path === undefined ? { policy: {}, problems: [] } : readPolicyFile(path, readText);
}

/** Reads what is added to chat requests, for all models and for single ones. */
function readExtraBody(
  { GATEWAY_EXTRA_BODY: json, GATEWAY_EXTRA_BODY_FILE: path }: GivenVariables,
  readText: ReadText,
): { body: ExtraBody; problems: Array<[name: string, message: string]> } {
  const all = json === undefined ? {} : readExtraFields(json);
  const models = path === undefined ? new Map() : readFields(path, readText);
  const problems = [["GATEWAY_EXTRA_BODY", all] as const, ["GATEWAY_EXTRA_BODY_FILE", models] as const].flatMap(
    ([name, found]): Array<[string, string]> => (typeof found === "string" ? [[name, found]] : []),
  );
  const body = { all: typeof all === "string" ? {} : all, models: typeof models === "string" ? new Map() : models };
  return { body, problems };
}

function readFields(path: string, readText: ReadText): ReturnType<typeof readModelFields> {
  let json: string;
  try {
    json = readText(path);
  } catch {
    return "must be the path of a file that can be read";
  }
  return readModelFields(json);
}

/** Origins of what stands in for platforms whose links to files anybody may open. */
export function publicFileOrigins({ discord }: Pick<Config, "discord">): string[] {
  return discord?.apiUrl === undefined ? [] : [new URL(discord.apiUrl).origin];
}

/** Platforms where the bot may be installed in several workspaces, which may have channels with the same id. */
export function platformsOfSeveralWorkspaces({ slack }: Pick<Config, "slack">): ReadonlySet<string> {
  return new Set(slack?.oauth === undefined ? [] : ["slack"]);
}

function findMisspelt(given: GivenVariables): string[] {
  const unset = CONFIG_VARIABLES.filter((name) => given[name] === undefined);
  return Object.keys(given)
    .filter((name) => !CONFIG_VARIABLES.includes(name))
    .flatMap((name) => {
      const meant = similarNames(name, unset);
      return meant.length === 0 ? [] : [`${name} is not known; did you mean ${meant.join(" or ")}?`];
    });
}

function toConfig(values: Values, extraBody: ExtraBody, pageOn: boolean): Omit<Config, "mcp" | "policy"> {
  const consoleChat = values.CONSOLE_CHAT === "on";
  return {
    gateway: toGateway(values, extraBody),
    slack: consoleChat ? undefined : toSlack(values),
    discord: consoleChat ? undefined : toDiscord(values),
    consoleChat,
    localChat: { enabled: pageOn, password: values.LOCAL_PASSWORD, allowedHosts: toAllowedHosts(values) },
    redisUrl: values.REDIS_URL,
    role: values.ROLE,
    dataDir: values.DATA_DIR,
    host: values.HOST,
    port: values.PORT,
    publicUrl: values.PUBLIC_URL,
    metricsToken: values.METRICS_TOKEN,
    admin: toAdmin(values),
    relaySecrets: values.RELAY_SECRETS,
    encryptionKey: values.ENCRYPTION_KEY,
    fetchUrlHosts: values.FETCH_URL_HOSTS,
    botName: values.BOT_NAME,
    removesWithQuestion: values.DELETED_QUESTIONS === "remove",
    logLevel: values.LOG_LEVEL,
    limits: {
      historyTtlMs: values.HISTORY_TTL_DAYS * 24 * 60 * 60 * 1000,
      historyMaxMessages: values.HISTORY_MAX_MESSAGES,
      historyMaxTokens: values.HISTORY_MAX_TOKENS,
      contextMessages: values.CONTEXT_MESSAGES,
      maxConcurrentTurns: values.MAX_CONCURRENT_TURNS,
      shutdownGraceMs: values.SHUTDOWN_GRACE_SECONDS * 1000,
      maxReferences: values.IMAGINE_MAX_REFERENCES,
    },
  };
}

function toGateway(values: Values, extraBody: ExtraBody): GatewayConfig {
  const { GATEWAY_BASE_URL: baseUrl, GATEWAY_API_KEY: apiKey, CHAT_MODEL: chatModel, IMAGE_MODEL: imageModel } = values;
  const rest = {
    imageApi: values.IMAGE_API === "auto" ? undefined : values.IMAGE_API,
    imageKeyHeader: values.GATEWAY_IMAGE_KEY_HEADER,
    headers: values.GATEWAY_HEADERS,
    systemPrompt: values.SYSTEM_PROMPT,
    extraBody,
    fallback: toFallback(values),
  };
  if (baseUrl !== undefined && apiKey !== undefined && chatModel !== undefined) {
    return { baseUrl, apiKey, chatModel, imageModel, ...rest };
  }
  return {
    baseUrl: undefined,
    apiKey: undefined,
    chatModel: chatModel ?? "sandbox-chat",
    imageModel: imageModel ?? "sandbox-image",
    ...rest,
  };
}

function toFallback(values: Values): FallbackConfig {
  const { GATEWAY_FALLBACK_BASE_URL: baseUrl, GATEWAY_FALLBACK_API_KEY: apiKey, CHAT_FALLBACK_MODEL: model } = values;
  return { model, gateway: baseUrl === undefined || apiKey === undefined ? undefined : { baseUrl, apiKey } };
}

function toSlack(values: Values): SlackConfig | undefined {
  const { SLACK_BOT_TOKEN: botToken, SLACK_APP_TOKEN: appToken, SLACK_SIGNING_SECRET: signingSecret } = values;
  const oauth = toSlackOauth(values);
  const common = { apiUrl: values.SLACK_API_URL, allowedBots: values.SLACK_ALLOWED_BOTS };
  const access = botToken === undefined ? oauth && { botToken, oauth } : { botToken, oauth: undefined };
  if (access === undefined) return undefined;
  if (appToken !== undefined) return { ...common, ...access, mode: "socket", appToken };
  return signingSecret === undefined ? undefined : { ...common, ...access, mode: "http", signingSecret };
}

function toSlackOauth(values: Values): SlackOauthConfig | undefined {
  const { SLACK_CLIENT_ID: clientId, SLACK_CLIENT_SECRET: clientSecret } = values;
  const { SLACK_STATE_SECRET: stateSecret, ENCRYPTION_KEY: encryptionKey } = values;
  if (!clientId || !clientSecret || !stateSecret || !encryptionKey) return undefined;
  return { clientId, clientSecret, stateSecret, encryptionKey };
}

function toDiscord(values: Values): DiscordConfig | undefined {
  if (values.DISCORD_TOKEN === undefined) return undefined;
  return {
    token: values.DISCORD_TOKEN,
    apiUrl: values.DISCORD_API_URL,
    threads: values.DISCORD_THREADS,
    guildId: values.DISCORD_GUILD_ID,
    shards: values.SHARD_COUNT === undefined ? undefined : { ids: values.SHARDS, count: values.SHARD_COUNT },
  };
}

function toAdmin(values: Values): AdminConfig | undefined {
  const { ADMIN_PASSWORD: password, ADMIN_TRUSTED_PROXY: networks, ADMIN_USER_HEADER: userHeader } = values;
  const proxy = networks && userHeader ? { networks, userHeader } : undefined;
  if (password === undefined && proxy === undefined) return undefined;
  return { password, proxy, allowedHosts: toAllowedHosts(values) };
}

function toAllowedHosts({ HOST, PUBLIC_URL }: Values): string[] {
  const hosts = WILDCARD_HOSTS.includes(HOST) ? [] : [toHostname(HOST)];
  if (PUBLIC_URL !== undefined) hosts.push(new URL(PUBLIC_URL).hostname);
  return hosts.map((host) => host.toLowerCase());
}

/** Browsers ask for an IPv6 address in brackets, and in its shortest form. */
function toHostname(host: string): string {
  return isIPv6(host) ? new URL(`http://[${host}]`).hostname : host;
}
