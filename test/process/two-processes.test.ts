import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createStores } from "../../src/store/keyv.ts";
import { startSlack } from "../simulators/slack/slack.ts";
import { eventually } from "../support/eventually.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";
import { type RunningService, startService } from "../support/service.ts";
import { answersIn, makeFolder } from "./slack-service.ts";

describe.skipIf(isRedisMissing)("two processes on one Redis (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    return () => redis.stop();
  });

  async function start() {
    const slack = await startSlack();
    const ada = slack.user({ name: "Ada" });
    const general = slack.channel({ name: "general", members: [ada] });
    const open = async (): Promise<RunningService> => {
      const service = await startService(await makeFolder(), {
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_API_URL: slack.apiUrl,
        SLACK_SIGNING_SECRET: slack.signingSecret,
        REDIS_URL: redis.url,
      });
      onTestFinished(async () => void (await service.end("SIGKILL")));
      return service;
    };
    const [one, other] = [await open(), await open()];
    /** What happens from now on is heard by this one. */
    const hear = (service: RunningService) => slack.deliverTo(`${service.url}/slack/events`);
    hear(one);
    return { slack, ada, general, one, other, hear };
  }

  const NUMBERS = Array.from({ length: 150 }, (_, index) => String(index + 1)).join(" ");
  /** Whether it answers something at the moment. */
  const asks = async (service: RunningService) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    return Number(/^palaver_queue_\w*active\w* (\d+)/m.exec(text)?.[1] ?? 0) > 0;
  };

  test("twelve messages at once in one conversation are all in its history, and answered in order", async () => {
    const { slack, ada, general, one, other, hear } = await start();
    const root = ada.mention(general, "Say: hello");
    await answersIn(slack, general, root);
    const texts = Array.from({ length: 12 }, (_, index) => `Say: word${index + 1}`);
    for (const [index, text] of texts.entries()) {
      hear(index % 2 === 0 ? one : other);
      ada.say(general, text, { thread: root });
    }
    await slack.acknowledged();
    const isAnswered = () => slack.texts(general, root).join(" ").includes("word12");
    await slack.until(isAnswered, "the answer to the last one");
    await answersIn(slack, general, root, 2);

    const stores = createStores({ redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent });
    onTestFinished(stores.close);
    const history = createHistory({ open: stores.open, ttlMs: 86_400_000, log: silent, now: Date.now });
    const [conversationId] = await Array.fromAsync(history.conversations(`slack:${slack.workspace.id}:${general.id}:`));
    const { entries } = await history.read(conversationId ?? "", { maxEntries: 100 });
    const said = entries
      .filter(({ author }) => author !== undefined)
      .flatMap(({ messages: [first] }) => (typeof first?.content === "string" ? [first.content] : []));
    expect(new Set(said)).toEqual(new Set(["Say: hello", ...texts]));
    expect(said).toHaveLength(13);
    const shown = [
      ...slack
        .texts(general, root)
        .join(" ")
        .matchAll(/word(\d+)/g),
    ].map(([, number]) => Number(number));
    const order = said.flatMap((text) => /word(\d+)/.exec(text)?.[1] ?? []).map(Number);
    expect(shown).toEqual(order.filter((number) => shown.includes(number)));
  });

  test("killed in the middle of an answer, one is replaced by the other, in the same message", async () => {
    const { slack, ada, general, one, other } = await start();
    const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
    const states = () => slack.answers(general, asked).reduce((sum, answer) => sum + answer.states.length, 0);
    await slack.until(() => states() >= 3, "the beginning of the answer");
    const working = (await asks(one)) ? one : other;
    const left = working === one ? other : one;
    slack.deliverTo(`${left.url}/slack/events`);
    const killedAt = performance.now();
    await working.end("SIGKILL");
    const before = states();
    await eventually(() => asks(left)).toBe(true);
    process.stdout.write(`taken over ${Math.round(performance.now() - killedAt)} ms after kill -9\n`);
    await slack.until(() => states() > before, "the answer to grow again");
    process.stdout.write(`grown again ${Math.round(performance.now() - killedAt)} ms after kill -9\n`);
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
  });

  test("a stop that is pressed at the one ends the answer of the other", async () => {
    const { slack, ada, general, one, other, hear } = await start();
    // Where an answer is posted and edited, its button stands under it.
    slack.setStreaming("unknown_method");
    const asked = ada.mention(general, `At 20 tokens per second, say: ${NUMBERS}`);
    await slack.until(() => slack.answers(general, asked).some(({ states }) => states.length >= 3), "an answer");
    hear((await asks(one)) ? other : one);
    const [answer] = slack.answers(general, asked);
    if (answer === undefined) throw new Error("There is no answer.");
    await ada.press(answer, "stop");
    const [text] = await answersIn(slack, general, asked);
    expect(text).not.toContain("150");
    expect(text).toMatch(/stopped/i);
  });
});
