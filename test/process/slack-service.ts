import { onTestFinished } from "vitest";
import type { Channel, Message } from "../../lab/slack-sim/world.ts";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import type { TransportName } from "../support/bolt-app.ts";
import type { OnEnd } from "../support/listen.ts";
import { type Slack, startGeneral } from "../support/slack.ts";

interface Opened {
  service: RunningService;
  dataDir: string;
}

/**
 * The service as a separate process that is connected to this Slack. `model` selects its gateway. The process ends with
 * the test, or when `onEnd` runs.
 */
export async function open(
  slack: Slack,
  transport: TransportName,
  dataDir?: string,
  model: Record<string, string> = {},
  onEnd: OnEnd = onTestFinished,
): Promise<Opened> {
  const path = dataDir ?? (await makeFolder(onEnd));
  const proof: Record<string, string> =
    transport === "HTTP" ? { SLACK_SIGNING_SECRET: slack.signingSecret } : { SLACK_APP_TOKEN: slack.appToken };
  const env = { SLACK_BOT_TOKEN: slack.botToken, SLACK_API_URL: slack.apiUrl, ...proof, ...model };
  const service = await startService(path, env);
  onEnd(async () => void (await service.end("SIGKILL")));
  if (transport === "HTTP") slack.deliverTo(`${service.url}/slack/events`);
  return { service, dataDir: path };
}

export async function makeFolder(onEnd: OnEnd = onTestFinished): Promise<string> {
  const { path, remove } = await makeDataDir();
  onEnd(remove);
  return path;
}

/** Resolves to the bot's messages in a thread, when there are `count` messages and none is growing. */
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

export async function start(
  transport: TransportName,
  model: Record<string, string> = {},
  onEnd: OnEnd = onTestFinished,
) {
  const { slack, ada, general } = await startGeneral({}, onEnd);
  return { slack, ada, general, ...(await open(slack, transport, undefined, model, onEnd)) };
}
