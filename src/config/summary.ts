import type { ExtraBody } from "../gateway/extra-body.ts";
import type { AdapterModule } from "../port/module.ts";
import { isLoopback } from "../port/variables.ts";
import type { Config, FallbackConfig } from "./config.ts";
import { secretsOfMcp } from "./mcp-servers.ts";
import { describeQuotas, findUnpriced } from "./policy/money.ts";

/**
 * Returns lines for the log at the start: whether each part is on, and how to switch it on. They contain no secrets.
 */
export function describeConfig(config: Config): string[] {
  return [
    describeGateway(config),
    describePictures(config),
    ...describePlatforms(config),
    describeAdmin(config),
    ...describeRole(config),
    ...describeTools(config),
    ...describePolicy(config),
    config.redisUrl === undefined
      ? `Storage: SQLite in ${config.dataDir} (set REDIS_URL to share it with other processes)`
      : `Storage: Redis, and SQLite in ${config.dataDir} for this process's own data`,
  ];
}

/** Returns sentences for anyone who opens this address while the local page is off. */
export function describeForVisitors({ platforms, role, modules }: Config): string[] {
  if (platforms.some(({ module }) => module.surface === "terminal")) return ["It answers in this terminal."];
  if (role === "worker") return ["This process answers the messages that other processes receive."];
  const names = platforms.flatMap(({ module }) => (module.surface === undefined ? [module.name] : []));
  const page = modules.find(({ surface }) => surface === "page");
  return [
    names.length === 0 ? "No platform is connected yet." : `It answers on ${names.join(" and ")}.`,
    ...(page ? [`The chat page is off. To switch it on, put ${page.switches[0]} into .env and restart Palaver.`] : []),
  ];
}

/** Says for each platform whether it is on, or how to switch it on. Omitted for a terminal chat. */
function describePlatforms({ modules, platforms }: Config): string[] {
  const lines = modules.flatMap((module) => {
    if (module.surface === "terminal") return [];
    const on = platforms.find((platform) => platform.module === module);
    if (on === undefined) return [`${module.name}: off (set ${module.switches[0]} to switch it on)`];
    return [[`${module.name}: on`, module.describe?.(on.config)].filter(Boolean).join(", ")];
  });
  return platforms.length > 0 ? lines : [...lines.slice(0, -1), `${lines.at(-1)}; no one can talk to the bot`];
}

/** Lists all values of the configuration that must stay secret: keys, tokens and passwords. */
export function secretsOf(config: Config): string[] {
  const { gateway, redisUrl, metricsToken, admin } = config;
  const secrets = [
    gateway.apiKey,
    gateway.fallback.gateway?.apiKey,
    ...Object.values(gateway.headers ?? {}),
    ...config.platformSecrets,
    metricsToken,
    admin?.password,
    ...config.relaySecrets,
    ...formsOf(config.encryptionKey),
  ];
  if (redisUrl !== undefined) secrets.push(...passwordsOf(redisUrl));
  secrets.push(...config.mcp.servers.flatMap(secretsOfMcp));
  return secrets.filter((secret) => secret !== undefined);
}

/** Patterns of the platforms' tokens. The log redacts matching text even if no variable contains it. */
export function tokenForms(modules: readonly AdapterModule[]): RegExp[] {
  return modules.flatMap(({ tokens = [] }) => tokens);
}

/** Returns every usual encoding of the encryption key. */
function formsOf(key: Uint8Array | undefined): string[] {
  if (key === undefined) return [];
  return (["hex", "base64", "base64url"] as const).map((encoding) => Buffer.from(key).toString(encoding));
}

/** Returns the password in an address, both encoded and decoded, and the address itself. */
function passwordsOf(address: string): string[] {
  const { password } = new URL(address);
  return password === "" ? [] : [address, password, unescaped(password)];
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function describeGateway({ gateway }: Config): string {
  const added = `${describeExtraBody(gateway.extraBody)}${describeFallback(gateway.fallback)}`;
  return gateway.baseUrl === undefined
    ? `Gateway: the embedded sandbox, model ${gateway.chatModel}${added}, which invents its answers (set GATEWAY_BASE_URL, GATEWAY_API_KEY and CHAT_MODEL to use a real model)`
    : `Gateway: ${gateway.baseUrl}, model ${gateway.chatModel}${added}`;
}

function describeFallback({ model, gateway }: FallbackConfig): string {
  const others = [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(gateway === undefined ? [] : [gateway.baseUrl]),
  ];
  return others.length === 0 ? "" : `, with ${others.join(" and ")} to fall back on`;
}

/** Lists only the names of the fields, because a value can be secret. */
function describeExtraBody({ all, models }: ExtraBody): string {
  const names = new Set([all, ...models.values()].flatMap(Object.keys));
  return names.size === 0 ? "" : `, with ${[...names].join(", ")} added to each request`;
}

function describePictures({ gateway, publicUrl }: Config): string {
  if (gateway.imageModel === undefined) return "Images: off (set IMAGE_MODEL to switch them on)";
  const isFar = gateway.baseUrl !== undefined && !isLoopback(new URL(gateway.baseUrl).hostname);
  const needsLinks = (gateway.imageApi ?? "generate-content") === "generate-content";
  const hint =
    isFar && needsLinks && publicUrl === undefined
      ? " (set PUBLIC_URL so that people can start from their own images on every platform)"
      : "";
  return `Images: on, model ${gateway.imageModel}${hint}`;
}

function describeAdmin({ admin }: Config): string {
  if (admin === undefined) return "Dashboard: off (set ADMIN_PASSWORD to switch it on)";
  const ways = [
    admin.password && "with a password",
    admin.proxy && `for people whom a proxy names in ${admin.proxy.userHeader}`,
  ];
  return `Dashboard: on at /admin, ${ways.filter(Boolean).join(" and ")}`;
}

function describeRole({ role }: Config): string[] {
  if (role === "all") return [];
  return [
    role === "ingress"
      ? "Role: ingress, which receives messages and leaves answering to workers"
      : "Role: worker, which answers the messages that other processes receive",
  ];
}

function describeTools({ mcp: { path, servers }, fetchUrlHosts }: Config): string[] {
  const lines: string[] = [];
  if (servers.length > 0) lines.push(`MCP tools: ${servers.map(({ name }) => name).join(", ")} (${path})`);
  if (fetchUrlHosts.length > 0) lines.push(`Web pages that the model can read: on ${fetchUrlHosts.join(", ")}`);
  return lines;
}

function describePolicy({ policy: { path, policy }, gateway }: Config): string[] {
  if (path === undefined) return [];
  const rules = (policy.access?.rules ?? []).length;
  const limits = describeQuotas(policy);
  const unpriced = findUnpriced(policy, namedModels(gateway)).map(({ variable, model }) => `${variable} ${model}`);
  const loose =
    unpriced.length === 0
      ? ""
      : `; no price for ${unpriced.join(", ")}: the money limit works only if the gateway reports costs`;
  return [
    `Policy: ${path}, ${rules === 1 ? "1 rule" : `${rules} rules`}, ${limits.length === 0 ? "no limits" : `limits: ${limits.join(", ")}`}${loose}`,
  ];
}

export function namedModels({ chatModel, imageModel, fallback }: Config["gateway"]) {
  const named = { CHAT_MODEL: chatModel, CHAT_FALLBACK_MODEL: fallback.model, IMAGE_MODEL: imageModel };
  return Object.entries(named).flatMap(([variable, model]) => (model === undefined ? [] : [{ variable, model }]));
}
