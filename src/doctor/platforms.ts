import { checkDiscord } from "../../adapters/discord/check.ts";
import { checkSlack } from "../../adapters/slack/check.ts";
import type { Config, DiscordConfig } from "../config/config.ts";
import type { Finding } from "../port/finding.ts";
import type { Section } from "./report.ts";

/** What each platform's own adapter knows to try. */
export function createPlatformSections({ slack, discord }: Config): Section[] {
  const off = (variable: string) => [{ ok: true, what: `Off: ${variable} is not set.` }];
  return [
    {
      title: "Slack",
      run: async (signal) => (slack === undefined ? off("SLACK_BOT_TOKEN") : checkSlack(slack, signal)),
    },
    {
      title: "Discord",
      run: async (signal) => (discord === undefined ? off("DISCORD_TOKEN") : examineDiscord(discord, signal)),
    },
  ];
}

function examineDiscord({ token, apiUrl, guildId }: DiscordConfig, signal: AbortSignal): Promise<Finding[]> {
  const options = { token, ...(apiUrl !== undefined && { apiUrl }), ...(guildId !== undefined && { guildId }) };
  return checkDiscord(options, signal);
}
