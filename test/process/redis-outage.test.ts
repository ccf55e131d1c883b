import { describe, expect, test } from "vitest";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { startService } from "../../lab/support/service.ts";
import { eventually } from "../support/eventually.ts";
import { startHeldGateway } from "../support/held-gateway.ts";
import type { OnEnd } from "../support/listen.ts";
import { startGeneral } from "../support/slack.ts";
import { readMetric } from "./crew.ts";
import { answersIn, makeFolder } from "./slack-service.ts";

const OUTAGE_METRICS = ["store_reachable", "unkept_answers", "platform_connected"];

describe.skipIf(isRedisMissing).concurrent("an answer that ends while Redis is away (needs redis-server)", () => {
  async function start(onEnd: OnEnd) {
    const redis = await startRedis({ isKept: true });
    onEnd(redis.stop);
    const { slack, ada, general } = await startGeneral({}, onEnd);
    const gateway = await startHeldGateway("Well.", onEnd);
    const folder = await makeFolder(onEnd);
    const open = async () => {
      const service = await startService(folder, {
        SLACK_BOT_TOKEN: slack.botToken,
        SLACK_API_URL: slack.apiUrl,
        SLACK_SIGNING_SECRET: slack.signingSecret,
        REDIS_URL: redis.url,
        ...gateway.env,
      });
      onEnd(async () => void (await service.end("SIGKILL")));
      slack.deliverTo(`${service.url}/slack/events`);
      return service;
    };
    const service = await open();
    const countFailures = () =>
      service.lines.filter((line) => line.includes("could not be stored in the history")).length;
    const asked = ada.mention(general, "What is tea?");
    await gateway.say("Tea is ");
    await slack.until(() => slack.texts(general, asked).join("").includes("Tea is"), "the beginning of the answer");
    await redis.kill();
    await gateway.say("a leaf.");
    await gateway.finish();
    expect(await answersIn(slack, general, asked)).toEqual(["Tea is a leaf."]);
    return { redis, slack, ada, general, gateway, open, service, asked, countFailures };
  }

  test("an answer that ends while Redis is away is in the history once when Redis returns", async ({
    onTestFinished,
  }) => {
    const { redis, slack, ada, general, gateway, service, asked, countFailures } = await start(onTestFinished);
    await eventually(countFailures).toBe(1);
    const readMetrics = () => Promise.all(OUTAGE_METRICS.map((name) => readMetric(service, name)));
    await eventually(readMetrics).toEqual([0, 1, 1]);
    await redis.restart();
    await eventually(async () => (await fetch(`${service.url}/readyz`)).status).toBe(200);
    await eventually(readMetrics).toEqual([1, 0, 1]);
    ada.say(general, "And coffee?", { thread: asked });
    expect(await answersIn(slack, general, asked, 2)).toEqual(["Tea is a leaf.", "Well."]);
    expect(gateway.asked()).toHaveLength(2);
    expect(gateway.asked()[1]?.split("Tea is a leaf.")).toHaveLength(2);
    expect(gateway.asked()[1]).toMatch(/What is tea\?.*Tea is a leaf\..*And coffee\?/);
  });

  test("an answer reaches the history although its process was killed before Redis returned", async ({
    onTestFinished,
  }) => {
    const { redis, slack, ada, general, gateway, open, service, asked, countFailures } = await start(onTestFinished);
    await eventually(countFailures).toBeGreaterThan(0);
    await service.end("SIGKILL");
    await redis.restart();
    await open();
    ada.say(general, "And coffee?", { thread: asked });
    expect(await answersIn(slack, general, asked, 2)).toEqual(["Tea is a leaf.", "Well."]);
    expect(gateway.asked()).toHaveLength(2);
    expect(gateway.asked()[1]).toMatch(/What is tea\?.*Tea is a leaf\..*And coffee\?/);
  });
});
