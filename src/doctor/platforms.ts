import { createHmac } from "node:crypto";
import type { Config, DiscordConfig } from "../config/config.ts";
import { namedGroupsOf } from "../policy/access.ts";
import type { Finding } from "../port/finding.ts";
import type { EventsAddress } from "./address.ts";
import type { Section } from "./report.ts";

const CHALLENGE = "palaver-doctor";

/** One section for each platform, carried out by its adapter, which is loaded where there is something to examine. */
export function createPlatformSections({ slack, discord, policy }: Config): Section[] {
  const off = (variable: string) => [{ ok: true, what: `Off: ${variable} is not set.` }];
  return [
    {
      title: "Slack",
      async run(signal) {
        if (slack === undefined) return off("SLACK_BOT_TOKEN");
        const { checkSlack } = await import("../../adapters/slack/check.ts");
        return checkSlack(slack, signal, namedGroupsOf(policy.policy.access ?? {}));
      },
    },
    {
      title: "Discord",
      run: async (signal) => (discord === undefined ? off("DISCORD_TOKEN") : examineDiscord(discord, signal)),
    },
  ];
}

async function examineDiscord(config: DiscordConfig, signal: AbortSignal): Promise<Finding[]> {
  const { checkDiscord } = await import("../../adapters/discord/check.ts");
  return checkDiscord(config, signal);
}

/** The address to which a platform sends its events by HTTP; undefined when none does, or to others of our processes. */
export function findEventsAddress({ slack, role }: Pick<Config, "slack" | "role">): EventsAddress | undefined {
  if (slack?.mode !== "http" || role === "worker") return undefined;
  const { signingSecret } = slack;
  return {
    platform: "Slack",
    path: "/slack/events",
    toRequest: () => toVerification(signingSecret),
    expected: CHALLENGE,
  };
}

/** Slack's first request to a new address (https://docs.slack.dev/reference/events/url_verification), signed as Slack signs. */
function toVerification(signingSecret: string): RequestInit {
  const body = JSON.stringify({ type: "url_verification", challenge: CHALLENGE, token: "" });
  const seconds = Math.floor(Date.now() / 1_000);
  const signature = createHmac("sha256", signingSecret).update(`v0:${seconds}:${body}`).digest("hex");
  const headers = {
    "content-type": "application/json",
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": `v0=${signature}`,
  };
  return { method: "POST", body, headers };
}
