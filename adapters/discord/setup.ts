import type { SetupStep } from "../../src/port/setup.ts";

const PORTAL = { label: "Discord Developer Portal", url: "https://discord.com/developers/applications" };

/** Connects the bot. The check of the token also offers a link that adds the bot to a server. */
export function discordStep({ botName }: { botName: string }): SetupStep {
  return {
    id: "discord",
    name: "Discord",
    title: "Connect Discord",
    summary: "People mention the bot in channels, or send it direct messages.",
    ways: [
      {
        id: "bot",
        label: "Bot",
        tasks: [
          { text: "Press New Application, and give it the name that people will mention.", link: PORTAL },
          { text: "Installation: set Install Link to None, and press Save Changes." },
          {
            text: "Bot: switch Message Content Intent on and Public Bot off, and press Save Changes. Public Bot is on by default: strangers could add the bot to their servers, and you would pay for its answers.",
          },
          { text: "Bot: press Reset Token, and copy the token here." },
          { text: "The token check shows Add to a server: follow the link, choose a server, and check again." },
          { text: "Optional, General Information: upload docs/icon.png as the app icon." },
        ],
        fields: [{ name: "DISCORD_TOKEN", label: "Bot token", hint: "Bot: Reset Token.", kind: "secret" }],
      },
    ],
    greeting: `In a channel of that server, write: @${botName} hello`,
  };
}
