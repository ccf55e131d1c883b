import { discordStep } from "../../adapters/discord/setup.ts";
import { slackStep } from "../../adapters/slack/setup.ts";
import type { Config } from "../config/config.ts";
import { createPlatformSections } from "../doctor/platforms.ts";
import type { Finding } from "../port/finding.ts";
import type { SetupStep } from "../port/setup.ts";

export interface PlatformSetup {
  id: string;
  /** Variables that the step takes from the environment as they are. */
  given: readonly string[];
  toStep(how: { botName: string; publicUrl: string | undefined }): SetupStep;
  check(config: Config, signal: AbortSignal): Promise<Finding[]>;
}

/** Each adapter says what is to be done, and the doctor tries it. */
export const PLATFORM_SETUPS: readonly PlatformSetup[] = [
  { id: "slack", given: ["SLACK_API_URL", "PUBLIC_URL"], toStep: slackStep, check: examine("Slack") },
  { id: "discord", given: ["DISCORD_API_URL", "DISCORD_GUILD_ID"], toStep: discordStep, check: examine("Discord") },
];

function examine(title: string): PlatformSetup["check"] {
  return async (config, signal) => {
    const section = createPlatformSections(config).find((each) => each.title === title);
    return (await section?.run(signal)) ?? [];
  };
}
