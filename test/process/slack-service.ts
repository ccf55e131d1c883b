import { onTestFinished } from "vitest";
import type { TransportName } from "../simulators/slack/bolt-app.ts";
import { type Slack, startSlack } from "../simulators/slack/slack.ts";
import type { Channel, Message } from "../simulators/slack/world.ts";
import { makeDataDir, type RunningService, startService } from "../support/service.ts";

interface Opened {
  service: RunningService;
  dataDir: string;
}

/** The service as a process of its own, connected to this Slack; `model` says which gateway it asks. It ends with the test. */
export async function open(
  slack: Slack,
  transport: TransportName,
  dataDir?: string,
  model: Record<string, string> = {},
): Promise<Opened> {
  const path = dataDir ?? (await makeFolder());
  const proof: Record<string, string> =
    transport === "HTTP" ? { SLACK_SIGNING_SECRET: slack.signingSecret } : { SLACK_APP_TOKEN: slack.appToken };
  const env = { SLACK_BOT_TOKEN: slack.botToken, SLACK_API_URL: slack.apiUrl, ...proof, ...model };
  const service = await startService(path, env);
  onTestFinished(async () => void (await service.end("SIGKILL")));
  if (transport === "HTTP") slack.deliverTo(`${service.url}/slack/events`);
  return { service, dataDir: path };
}

export async function makeFolder(): Promise<string> {
  const { path, remove } = await makeDataDir();
  onTestFinished(remove);
  return path;
}

/** What the bot shows in a thread once it has so many messages there and none of them grows. */
export async function answersIn(slack: Slack, channel: Channel, thread: Message, count = 1): Promise<string[]> {
  const isDone = () => {
    const answers = slack.answers(channel, thread);
    return answers.length >= count && answers.every(isFinished) && slack.status(channel, thread) === "";
  };
  await slack.until(isDone, `${count} finished answers`);
  return slack.texts(channel, thread);
}

function isFinished({ stream, content }: Message): boolean {
  const text = JSON.stringify(content.blocks);
  return stream?.state !== "in_progress" && !text.includes('"stop:');
}

/** A workspace with a person and a channel, and the service in it. */
export async function start(transport: TransportName, model: Record<string, string> = {}) {
  const slack = await startSlack();
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
  return { slack, ada, general, ...(await open(slack, transport, undefined, model)) };
}
