import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSlack, type Slack } from "../simulators/slack/control.ts";
import type { Channel, Message } from "../simulators/slack/world.ts";
import { eventually } from "../support/eventually.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../support/service.ts";
import { answersIn } from "./slack-service.ts";

const NUMBERS = Array.from({ length: 150 }, (_, index) => String(index + 1)).join(" ");
const LONG = `At 20 tokens per second, say: ${NUMBERS}`;

describe.skipIf(isRedisMissing)(
  "what comes in at a process that does not write the answer (needs redis-server)",
  () => {
    let redis: RedisServer;
    let slack: Slack;
    let services: RunningService[] = [];
    const folders: Array<() => Promise<void>> = [];

    beforeAll(async () => {
      redis = await startRedis();
      slack = await openSlack();
      // Where an answer is posted and edited, its buttons stand under it.
      slack.setStreaming("unknown_method");
      const open = async () => {
        const { path, remove } = await makeDataDir();
        folders.push(remove);
        return startService(path, {
          SLACK_BOT_TOKEN: slack.botToken,
          SLACK_API_URL: slack.apiUrl,
          SLACK_SIGNING_SECRET: slack.signingSecret,
          REDIS_URL: redis.url,
        });
      };
      services = await Promise.all([open(), open()]);
    });
    afterAll(async () => {
      await Promise.all(services.map((service) => service.end("SIGKILL")));
      await slack.close();
      await redis.stop();
      for (const remove of folders) await remove();
      slack.assertClean();
    });

    async function isBusy({ url }: RunningService): Promise<boolean> {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^palaver_queue_\w*active\w* (\d+)/m.exec(text)?.[1] ?? 0) > 0;
    }

    function hearAt(service: RunningService | undefined): void {
      if (service === undefined) throw new Error("There is no such process.");
      slack.deliverTo(`${service.url}/slack/events`);
    }

    /** Asks for a long answer; once it grows, everything is heard by the process that does not write it. */
    async function ask(name: string, text = LONG) {
      const ada = slack.user({ name });
      const channel = slack.channel({ name: name.toLowerCase(), members: [ada] });
      await eventually(async () => (await Promise.all(services.map(isBusy))).includes(true)).toBe(false);
      hearAt(services[0]);
      const asked = ada.mention(channel, text);
      await slack.until(() => slack.answers(channel, asked).some(({ states }) => states.length >= 3), "an answer");
      const busy = await Promise.all(services.map(isBusy));
      expect(busy.filter(Boolean)).toHaveLength(1);
      hearAt(services[busy.indexOf(false)]);
      return { ada, channel, asked };
    }

    function onlyAnswer(channel: Channel, asked: Message): Message {
      const [answer, ...others] = slack.answers(channel, asked);
      if (answer === undefined || others.length > 0) throw new Error("There is not one answer.");
      return answer;
    }

    test("an edit begins the answer anew, in the same message", async () => {
      const { ada, channel, asked } = await ask("Edith");
      const before = onlyAnswer(channel, asked).ts;
      ada.edit(asked, `<@${slack.workspace.bot.id}> Say: something short`);
      await slack.until(() => slack.texts(channel, asked).join() === "something short", "the other answer");
      expect(await answersIn(slack, channel, asked)).toEqual(["something short"]);
      expect(onlyAnswer(channel, asked).ts).toBe(before);
    });

    test("a deletion takes the answer back", async () => {
      const { ada, channel, asked } = await ask("Del");
      ada.delete(asked);
      await slack.until(() => slack.answers(channel, asked).length === 0, "the answer to be gone");
      await eventually(async () => (await Promise.all(services.map(isBusy))).includes(true)).toBe(false);
      expect(slack.answers(channel)).toEqual([]);
    });

    test("Stop ends the answer, and Retry writes it once more, in the same message", async () => {
      const { ada, channel, asked } = await ask("Rita");
      const { ts } = onlyAnswer(channel, asked);
      await ada.press(onlyAnswer(channel, asked), "stop");
      const [text] = await answersIn(slack, channel, asked);
      expect(text).toMatch(/stopped/i);
      await ada.press(onlyAnswer(channel, asked), "retry");
      await slack.until(() => slack.texts(channel, asked).join().endsWith("150"), "the whole answer");
      expect(await answersIn(slack, channel, asked)).toEqual([NUMBERS]);
      expect(onlyAnswer(channel, asked).ts).toBe(ts);
    });

    test("/forget ends the answer of the person who is erased", async () => {
      const { ada, channel, asked } = await ask("Ferdinand");
      await ada.command("/forget", "me for good", channel);
      const said = await slack.until(() => slack.ephemerals(channel, ada.id).at(-1), "the word that it is done");
      expect(JSON.stringify(said.content)).toMatch(/I know nothing about you any more/);
      await slack.until(() => slack.answers(channel, asked).length === 0, "the answer to be gone");
      await eventually(async () => (await Promise.all(services.map(isBusy))).includes(true)).toBe(false);
      expect(slack.answers(channel, asked)).toEqual([]);
    });
  },
);
