// `npm run lab:discord` starts a Discord to use by hand. See README.md.
import { serveControl } from "../support/control.ts";
import { openPlayground } from "./playground.ts";

const PORT = 8791;
const CONTROL_PORT = 8792;

const { discord, controlled } = await openPlayground(PORT);
const control = await serveControl(controlled, CONTROL_PORT);
process.stdout.write(`DISCORD_API_URL=${discord.apiUrl}
DISCORD_TOKEN=${discord.token}

The control API is at ${control.url}; GET / describes it.
`);

async function stop(): Promise<void> {
  await Promise.all([control.close(), discord.close()]);
}
process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());
