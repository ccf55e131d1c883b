import type { AdapterModule } from "../../src/port/module.ts";
import { type DiscordConfig, readConfig, VARIABLES } from "./config.ts";
import { PLATFORM } from "./ids.ts";
import { discordStep } from "./setup.ts";
import { toDirectChannelStore, toLastSessionStore, toTakeTurn } from "./stores.ts";

const SHARDS = "palaver:discord:shards";

export const module: AdapterModule<DiscordConfig> = {
  platform: PLATFORM,
  name: "Discord",
  switches: ["DISCORD_TOKEN"],
  variables: VARIABLES,
  readConfig,
  describe: ({ threads, shards }) =>
    `threads ${threads}${shards === undefined ? "" : `, shards ${shards.ids.join(", ")} of ${shards.count}`}`,
  async create(config, host) {
    const { createDiscordAdapter } = await import("./adapter.ts");
    const adapter = createDiscordAdapter({
      ...host,
      ...config,
      directChannels: toDirectChannelStore(host),
      lastSession: toLastSessionStore(host),
      shares: host.shareParts?.(SHARDS),
      takeTurn: toTakeTurn(host),
    });
    return { adapter };
  },
  async check(config, { hasRules }, signal) {
    const { checkDiscord } = await import("./check.ts");
    return checkDiscord({ ...config, hasRules }, signal);
  },
  fileOrigins: ({ apiUrl }) => (apiUrl === undefined ? [] : [new URL(apiUrl).origin]),
  setup: { given: ["DISCORD_API_URL", "DISCORD_GUILD_ID"], toStep: discordStep },
  // Bot tokens (id.time.hmac), and tokens inside the URLs of webhooks and interactions.
  tokens: [/(?<![\w-])[\w-]{23,30}\.[\w-]{6,7}\.[\w-]{27,}/, /(\/(?:webhooks|interactions)\/\d{5,20}\/)[\w-]{20,}/],
  async preview(markdown) {
    const { toPreview } = await import("./preview.ts");
    return toPreview(markdown);
  },
};
