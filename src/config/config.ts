import { isIPv6 } from "node:net";
import { z } from "zod";
import { type ExtraBody, readExtraFields, readModelFields } from "../gateway/extra-body.ts";
import type { ImageApi } from "../gateway/image-ways.ts";
import { type AdapterModule, type ConfiguredPlatform, isSwitchedOn } from "../port/module.ts";
import { type ConfigProblem, type GivenVariables, readVariables } from "../port/variables.ts";
import { DEFAULT_MCP_CONFIG, type McpServerConfig, type ReadText, readMcpFile } from "./mcp-servers.ts";
import { similarNames } from "./misspelling.ts";
import { type Policy, type PolicySettings, readPolicyFile } from "./policy/policy-file.ts";
import { readBoundedText } from "./read-text.ts";
import { findConflicts } from "./rules.ts";
import { variables } from "./variables.ts";

export function variableNames(modules: readonly AdapterModule[]): string[] {
  return [variables, ...modules.map((module) => module.variables.schemas)].flatMap(Object.keys);
}

interface GatewayModels {
  chatModel: string;
  /** Absent: images are off. */
  imageModel: string | undefined;
  /** Undefined: Palaver finds out what each model supports. */
  imageApi: ImageApi | undefined;
  imageKeyHeader: string | undefined;
  /** Headers for every request to the first gateway. */
  headers: Readonly<Record<string, string>> | undefined;
  systemPrompt: string;
  extraBody: ExtraBody;
  fallback: FallbackConfig;
}

/** The second model and gateway, used while the first ones are down or at their limit. */
export interface FallbackConfig {
  model: string | undefined;
  gateway: { baseUrl: string; apiKey: string } | undefined;
}

/** Without a base URL, the embedded sandbox answers with its own models. */
export type GatewayConfig = GatewayModels &
  ({ baseUrl: string; apiKey: string } | { baseUrl: undefined; apiKey: undefined });

/** Contains at least one of the two ways to sign in. */
export interface AdminConfig {
  password: string | undefined;
  /** Trusted proxies that authenticate administrators, and the header with the administrator's name, in lower case. */
  proxy: { networks: string[]; userHeader: string } | undefined;
  allowedHosts: Config["allowedHosts"];
}

export interface LimitsConfig {
  historyTtlMs: number;
  historyMaxMessages: number;
  historyMaxTokens: number;
  /** How many earlier channel messages the model gets with a question. */
  contextMessages: number;
  maxConcurrentTurns: number;
  shutdownGraceMs: number;
  /** Maximum number of reference images for one created image. */
  maxReferences: number;
}

/** `ingress` receives and stores events, `worker` answers them, `all` does both. */
type Role = "all" | "ingress" | "worker";

export interface Config {
  gateway: GatewayConfig;
  /** Includes platforms that are switched off. */
  modules: readonly AdapterModule[];
  platforms: readonly ConfiguredPlatform[];
  /** Values of the platforms' variables that must not appear in a log. */
  platformSecrets: readonly string[];
  redisUrl: string | undefined;
  role: Role;
  dataDir: string;
  host: string;
  port: number;
  /** The public address, without a trailing slash. */
  publicUrl: string | undefined;
  /** Browsers can open the pages under these host names and under loopback names. Lower case, without a port. */
  allowedHosts: readonly string[];
  /** The token for `/metrics`. Undefined: only programs on this machine can read the metrics. */
  metricsToken: string | undefined;
  /** Undefined if the dashboard is off. */
  admin: AdminConfig | undefined;
  /**
   * Keys for the links from which the gateway fetches images. The first key signs, and all keys verify. If empty,
   * Palaver creates a key.
   */
  relaySecrets: string[];
  /** 32 bytes that encrypt stored tokens. Undefined: tokens of tool servers are not stored. */
  encryptionKey: Uint8Array | undefined;
  mcp: { path: string; servers: readonly McpServerConfig[]; refused: readonly string[] };
  /** Permissions, quotas, prices and models. Without a path, nothing is restricted. */
  policy: { path: string | undefined; policy: Policy };
  fetchUrlHosts: string[];
  botName: string;
  /** If true, an answer is deleted with its question. Otherwise a button offers to delete the answer. */
  removesWithQuestion: boolean;
  logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  limits: LimitsConfig;
}

/** The environment is not a valid configuration. The message lists every problem, but no values. */
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

type Values = z.infer<z.ZodObject<typeof variables>>;

/** A terminal chat can run next to a service in the same folder, so it has its own data and port, and shows no log. */
const TERMINAL_DEFAULTS = [
  ["DATA_DIR", "./data/console"],
  ["PORT", "0"],
  ["LOG_LEVEL", "error"],
] as const;

const WILDCARD_HOSTS = ["0.0.0.0", "::", "[::]"];

/** Reads the configuration and the files that it names. Throws one `ConfigError` that lists every problem. */
export function readConfig(
  env: Environment,
  modules: readonly AdapterModule[],
  readText: ReadText = readBoundedText,
): Config {
  const given = toGiven(env, modules);
  const extra = readExtraBody(given, readText);
  const sentences = findConflicts(given).map((what) => ({ what }));
  const core = readVariables(variables, given, (values) => values, sentences);
  const found = readPlatforms(given, modules);
  const mcpPath = given["MCP_CONFIG"] ?? DEFAULT_MCP_CONFIG;
  const mcp = readMcpFile(mcpPath, env, readText);
  const policyPath = given["POLICY_FILE"];
  const policy = readPolicy(policyPath, readText);
  const problems = [
    ...findMisspelt(given, modules),
    ...toSentences([...core.problems, ...extra.problems, ...found.problems]),
    ...mcp.problems.map((problem) => `MCP_CONFIG ${problem}.`),
    ...policy.problems.map((problem) => `POLICY_FILE ${problem}.`),
  ];
  if (core.config === undefined || problems.length > 0) throw new ConfigError(problems);
  return {
    ...toConfig(core.config, extra.body),
    modules,
    platforms: found.platforms,
    platformSecrets: modules.flatMap((module) => module.variables.secrets.flatMap((name) => given[name] ?? [])),
    mcp: { path: mcpPath, servers: mcp.servers, refused: mcp.refused },
    policy: { path: policyPath, policy: policy.policy },
  };
}

function toGiven(env: Environment, modules: readonly AdapterModule[]): GivenVariables {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const trimmed = value?.trim();
    if (trimmed) given[name] = trimmed;
  }
  if (modules.some((module) => isTerminalOn(module, given))) {
    for (const [name, value] of TERMINAL_DEFAULTS) given[name] ??= value;
  }
  return given;
}

function isTerminalOn(module: AdapterModule, given: GivenVariables): boolean {
  return module.surface === "terminal" && isSwitchedOn(module, given);
}

/** Reads the platforms that are switched on. A terminal chat skips all other platforms. */
function readPlatforms(given: GivenVariables, modules: readonly AdapterModule[]) {
  const on = modules.filter((module) => isSwitchedOn(module, given));
  const readings = modules.map((module) => {
    const isAlone = on.every((other) => other === module);
    return { module, ...module.readConfig(given, isAlone) };
  });
  const hasTerminal = on.some(({ surface }) => surface === "terminal");
  const platforms = readings.flatMap(({ module, config }): ConfiguredPlatform[] =>
    config === undefined || (hasTerminal && module.surface === undefined) ? [] : [{ module, config }],
  );
  return { platforms, problems: readings.flatMap(({ problems }) => problems) };
}

/** Returns one sentence for each invalid variable, then a sentence for each conflict between variables. */
function toSentences(problems: readonly ConfigProblem[]): string[] {
  const wrong = new Map<string, string>();
  for (const { variable, what } of problems) if (variable && !wrong.has(variable)) wrong.set(variable, what);
  const conflicts = problems.flatMap(({ variable, what }) => (variable === undefined ? [what] : []));
  return [...[...wrong].map(([name, what]) => `${name} ${what}.`), ...conflicts];
}

function readPolicy(path: string | undefined, readText: ReadText): PolicySettings {
  return path === undefined ? { policy: {}, problems: [] } : readPolicyFile(path, readText);
}

/** Reads the additional fields of chat requests, for all models and for single models. */
function readExtraBody(
  { GATEWAY_EXTRA_BODY: json, GATEWAY_EXTRA_BODY_FILE: path }: GivenVariables,
  readText: ReadText,
): { body: ExtraBody; problems: ConfigProblem[] } {
  const all = json === undefined ? {} : readExtraFields(json);
  const models = path === undefined ? new Map() : readFields(path, readText);
  const problems = [["GATEWAY_EXTRA_BODY", all] as const, ["GATEWAY_EXTRA_BODY_FILE", models] as const].flatMap(
    ([variable, what]) => (typeof what === "string" ? [{ variable, what }] : []),
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

function findMisspelt(given: GivenVariables, modules: readonly AdapterModule[]): string[] {
  const known = new Set(variableNames(modules));
  const unset = [...known].filter((name) => given[name] === undefined);
  const remote = modules.filter(({ surface }) => surface === undefined);
  const ownWords = ["GATEWAY", ...remote.map(({ platform }) => platform.toUpperCase())];
  return Object.keys(given)
    .filter((name) => !known.has(name))
    .flatMap((name) => {
      const meant = similarNames(name, unset, ownWords);
      return meant.length === 0 ? [] : [`${name} is not known; did you mean ${meant.join(" or ")}?`];
    });
}

type CoreConfig = Omit<Config, "modules" | "platforms" | "platformSecrets" | "mcp" | "policy">;

function toConfig(values: Values, extraBody: ExtraBody): CoreConfig {
  return {
    gateway: toGateway(values, extraBody),
    redisUrl: values.REDIS_URL,
    role: values.ROLE,
    dataDir: values.DATA_DIR,
    host: values.HOST,
    port: values.PORT,
    publicUrl: values.PUBLIC_URL,
    allowedHosts: toAllowedHosts(values),
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

/** Writes an IPv6 address as browsers do: in brackets and in its shortest form. */
function toHostname(host: string): string {
  return isIPv6(host) ? new URL(`http://[${host}]`).hostname : host;
}
