import type { ExtraBody } from "../gateway/extra-body.ts";
import type { Config, FallbackConfig, SlackConfig } from "./config.ts";
import { secretsOfMcp } from "./mcp-servers.ts";
import { isLoopback } from "./variables.ts";

/** Lines for the log at the start: for each part, whether it is on and how to switch it on. They hold no secrets. */
export function describeConfig(config: Config): string[] {
  return [
    describeGateway(config),
    describePictures(config),
    describeSlack(config),
    describeDiscord(config),
    describePage(config),
    describeAdmin(config),
    ...describeRole(config),
    ...describeTools(config),
    config.redisUrl === undefined
      ? `Storage: SQLite in ${config.dataDir} (set REDIS_URL to share it with other processes)`
      : `Storage: Redis, and SQLite in ${config.dataDir} for this process's own data`,
  ];
}

/** Sentences for a browser at the address while the page is off. Strangers can read them. */
export function describeForVisitors({ slack, discord, role, consoleChat }: Config): string[] {
  const platforms = [slack && "Slack", discord && "Discord"].filter((name) => name !== undefined);
  if (consoleChat) return ["It answers at the terminal."];
  if (role === "worker") return ["This process answers the messages that other processes receive."];
  return [
    platforms.length === 0 ? "No platform is connected yet." : `It answers on ${platforms.join(" and ")}.`,
    "The chat page is off. To switch it on, put LOCAL_CHAT=on into .env and restart Palaver.",
  ];
}

/** Every value of the configuration that must never be shown: keys, tokens, passwords. */
export function secretsOf(config: Config): string[] {
  const { gateway, slack, discord, localChat, redisUrl, metricsToken, admin } = config;
  const secrets = [
    gateway.apiKey,
    gateway.fallback.gateway?.apiKey,
    ...Object.values(gateway.headers ?? {}),
    discord?.token,
    localChat.password,
    metricsToken,
    admin?.password,
    ...config.relaySecrets,
    ...formsOf(config.encryptionKey),
  ];
  if (slack !== undefined) secrets.push(...slackSecrets(slack));
  if (redisUrl !== undefined) secrets.push(...passwordsOf(redisUrl));
  secrets.push(...config.mcp.servers.flatMap(secretsOfMcp));
  return secrets.filter((secret) => secret !== undefined);
}

/** Every form in which the key may have been given that seals tokens. */
function formsOf(key: Uint8Array | undefined): string[] {
  if (key === undefined) return [];
  return (["hex", "base64", "base64url"] as const).map((encoding) => Buffer.from(key).toString(encoding));
}

function slackSecrets(slack: SlackConfig): (string | undefined)[] {
  const { botToken, oauth } = slack;
  return [
    botToken,
    slack.mode === "socket" ? slack.appToken : slack.signingSecret,
    oauth?.clientSecret,
    oauth?.stateSecret,
  ];
}

/** The password inside an address as it stands there and as it is meant, and the address that holds it. */
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
    ? `Gateway: the embedded sandbox, model ${gateway.chatModel}${added}, which makes up its answers (set GATEWAY_BASE_URL, GATEWAY_API_KEY and CHAT_MODEL to use a real model)`
    : `Gateway: ${gateway.baseUrl}, model ${gateway.chatModel}${added}`;
}

function describeFallback({ model, gateway }: FallbackConfig): string {
  const others = [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(gateway === undefined ? [] : [gateway.baseUrl]),
  ];
  return others.length === 0 ? "" : `, with ${others.join(" and ")} to fall back on`;
}

/** Names alone: a value may be anything. */
function describeExtraBody({ all, models }: ExtraBody): string {
  const names = new Set([all, ...models.values()].flatMap(Object.keys));
  return names.size === 0 ? "" : `, with ${[...names].join(", ")} added to each request`;
}

function describePictures({ gateway, publicUrl }: Config): string {
  if (gateway.imageModel === undefined) return "Pictures: off (set IMAGE_MODEL to switch them on)";
  const isFar = gateway.baseUrl !== undefined && !isLoopback(new URL(gateway.baseUrl).hostname);
  const needsLinks = (gateway.imageApi ?? "generate-content") === "generate-content";
  const hint =
    isFar && needsLinks && publicUrl === undefined
      ? " (set PUBLIC_URL so that people can start from pictures in Slack and on the page)"
      : "";
  return `Pictures: on, model ${gateway.imageModel}${hint}`;
}

function describeSlack({ slack, publicUrl }: Config): string {
  if (slack === undefined) return "Slack: off (set SLACK_BOT_TOKEN and SLACK_APP_TOKEN to switch it on)";
  const way = slack.mode === "socket" ? "Socket Mode" : `HTTP at POST ${publicUrl ?? ""}/slack/events`;
  const where =
    slack.oauth === undefined ? "one workspace" : `every workspace that installs it at ${publicUrl}/slack/install`;
  return `Slack: on, ${way}, ${where}`;
}

function describeDiscord({ discord }: Config): string {
  if (discord === undefined) return "Discord: off (set DISCORD_TOKEN to switch it on)";
  const { shards, threads } = discord;
  return `Discord: on, threads ${threads}${shards === undefined ? "" : `, shards ${shards.ids.join(", ")} of ${shards.count}`}`;
}

function describeAdmin({ admin }: Config): string {
  if (admin === undefined) return "Dashboard: off (set ADMIN_PASSWORD to switch it on)";
  const ways = [
    admin.password && "with a password",
    admin.proxy && `for the people that a proxy names in ${admin.proxy.userHeader}`,
  ];
  return `Dashboard: on at /admin, ${ways.filter(Boolean).join(" and ")}`;
}

function describeRole({ role }: Config): string[] {
  if (role === "all") return [];
  return [
    role === "ingress"
      ? "Role: ingress, which receives messages and leaves the answers to workers"
      : "Role: worker, which answers the messages that other processes receive",
  ];
}

function describeTools({ mcp: { path, servers }, fetchUrlHosts }: Config): string[] {
  const lines: string[] = [];
  if (servers.length > 0) lines.push(`Tools from outside: ${servers.map(({ name }) => name).join(", ")} (${path})`);
  if (fetchUrlHosts.length > 0) lines.push(`Web pages that the model can read: those of ${fetchUrlHosts.join(", ")}`);
  return lines;
}

function describePage({ localChat, slack, discord }: Config): string {
  if (localChat.enabled) return `Local page: on${localChat.password === undefined ? "" : ", with a password"}`;
  const nobody = slack === undefined && discord === undefined;
  return `Local page: off (set LOCAL_CHAT=on to switch it on)${nobody ? "; there is no way to talk to the bot" : ""}`;
}
