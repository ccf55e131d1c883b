import type { SetupStep } from "../../src/port/setup.ts";

const PORTAL = { label: "Discord Developer Portal", url: "https://discord.com/developers/applications" };

/** Connects the bot. The check of the token shows the link that lets it into a server. */
export function discordStep(): SetupStep {
  return {
    id: "discord",
    name: "Discord",
    title: "Connect Discord",
    summary: "People mention the bot in channels, or write to it directly.",
    ways: [
      {
        id: "bot",
        label: "Bot",
        tasks: [
          { text: "Make an application: New Application.", link: PORTAL },
          { text: "Under Bot, switch on Message Content Intent, and save." },
          {
            text: "Under Bot, press Reset Token, and copy it here. Check it: that shows the link that lets the bot in.",
          },
          { text: "Open that link, choose a server, and check once more." },
        ],
        fields: [{ name: "DISCORD_TOKEN", label: "Bot token", hint: "Bot: Reset Token.", kind: "secret" }],
      },
    ],
  };
}
