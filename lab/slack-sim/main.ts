// `npm run lab:slack` starts a Slack to use by hand. See README.md.
import { serveControl } from "../support/control.ts";
import { openPlayground } from "./playground.ts";

const PORT = 8789;
const CONTROL_PORT = 8790;

const { slack, controlled } = await openPlayground(PORT);
const control = await serveControl(controlled, CONTROL_PORT);
process.stdout.write(`SLACK_API_URL=${slack.apiUrl}
SLACK_BOT_TOKEN=${slack.botToken}
SLACK_APP_TOKEN=${slack.appToken}

The control API is at ${control.url}; GET / describes it.
`);

async function stop(): Promise<void> {
  await Promise.all([control.close(), slack.close()]);
}
process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());
