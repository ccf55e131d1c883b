import type { Config } from "../config.ts";

/** What is on, what is off and what would switch it on: one line each for the log at the start, without secrets. */
export function describeConfig(config: Config): string[] {
  return [
    describeGateway(config),
    describePictures(config),
    describeSlack(config),
    describeDiscord(config),
    describePage(config),
    config.redisUrl === undefined
      ? `Storage: SQLite in ${config.dataDir} (set REDIS_URL to keep histories in Redis)`
      : `Storage: histories in Redis, accepted messages in SQLite in ${config.dataDir}`,
  ];
}

/** Every value of the configuration that must never be shown: keys, tokens, passwords. */
export function secretsOf(config: Config): string[] {
  const { gateway, slack, discord, localChat, redisUrl } = config;
  const secrets = [gateway.apiKey, slack?.botToken, discord?.token, localChat.password];
  if (slack !== undefined) secrets.push(slack.mode === "socket" ? slack.appToken : slack.signingSecret);
  if (redisUrl !== undefined) secrets.push(...passwordsOf(redisUrl));
  return secrets.filter((secret) => secret !== undefined);
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
  return gateway.baseUrl === undefined
    ? `Gateway: the embedded sandbox, model ${gateway.chatModel} (set GATEWAY_BASE_URL, GATEWAY_API_KEY and CHAT_MODEL to use a real one)`
    : `Gateway: ${gateway.baseUrl}, model ${gateway.chatModel}`;
}

function describePictures({ gateway }: Config): string {
  return gateway.imageModel === undefined
    ? "Pictures: off"
    : `Pictures: model ${gateway.imageModel} is set, but this version does not draw yet`;
}

function describeSlack({ slack }: Config): string {
  if (slack === undefined) return "Slack: off (set SLACK_BOT_TOKEN and SLACK_APP_TOKEN to switch it on)";
  return "Slack: configured, but this version has no adapter for it yet, so nothing happens there";
}

function describeDiscord({ discord }: Config): string {
  if (discord === undefined) return "Discord: off (set DISCORD_TOKEN to switch it on)";
  return `Discord: on, threads ${discord.threads}`;
}

function describePage({ localChat, slack, discord }: Config): string {
  if (localChat.enabled) return `Local page: on${localChat.password === undefined ? "" : ", with a password"}`;
  const nobody = slack === undefined && discord === undefined;
  return `Local page: off (set LOCAL_CHAT=on to switch it on)${nobody ? "; there is nowhere to talk to the bot" : ""}`;
}
