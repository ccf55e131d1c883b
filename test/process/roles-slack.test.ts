import { describe, expect, onTestFinished, test } from "vitest";
import { openSlack } from "../simulators/slack/control.ts";
import { type Slack, startSlack } from "../simulators/slack/slack.ts";
import type { Channel, Message } from "../simulators/slack/world.ts";
import { eventually } from "../support/eventually.ts";
import { isRedisMissing } from "../support/redis.ts";
import type { RunningService } from "../support/service.ts";
import { type OnEnd, readMetric, shareScene, startCrew } from "./crew.ts";
import { answersIn } from "./slack-service.ts";

const NUMBERS = Array.from({ length: 150 }, (_, index) => String(index + 1)).join(" ");

async function startSockets(onEnd: OnEnd = onTestFinished) {
  const slack = await openSlack();
  onEnd(async () => {
    await slack.close();
    slack.assertClean();
  });
  const ada = slack.user({ name: "Ada" });
  const general = slack.channel({ name: "general", members: [ada] });
  const env = { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl };
  const crew = await startCrew(env, onEnd);
  await slack.until(() => slack.connections() >= 2, "the sockets");
  return { slack, ada, general, crew };
}

/** An answer of which people have read some. */
async function untilGrowing(slack: Slack, channel: Channel, asked: Message): Promise<Message> {
  return slack.until(() => slack.answers(channel, asked).find(({ states }) => states.length >= 3), "a growing answer");
}

async function readChecks({ url }: RunningService): Promise<object> {
  return ((await (await fetch(`${url}/readyz`)).json()) as { checks: object }).checks;
}

describe.skipIf(isRedisMissing)("an ingress and two workers on Slack (needs redis-server)", () => {
  const shared = shareScene(startSockets);
  /** A channel of the test's own in what all of these tests share. */
  function scene() {
    const { slack, ada, crew } = shared();
    return { slack, ada, crew, general: slack.channel({ name: `room-${(rooms += 1)}`, members: [ada] }) };
  }
  let rooms = 0;

  test("answer what only the ingress hears, which itself writes nothing", async () => {
    const { slack, ada, general, crew } = scene();
    const readTurns = () => Promise.all(crew.workers.map((worker) => readMetric(worker, "turns_total")));
    const before = await readTurns();
    const asked = ada.mention(general, "Say: hello");
    expect(await answersIn(slack, general, asked)).toEqual(["hello"]);
    expect(slack.connections()).toBe(2);
    expect(await readMetric(crew.ingress, "turns_total")).toBe(0);
    // Counted after its end is shown.
    const readMore = async () => (await readTurns()).map((turns, index) => turns - (before[index] ?? 0));
    await eventually(async () => (await readMore()).toSorted((a, b) => a - b)).toEqual([0, 1]);
    await eventually(() => readMetric(crew.ingress, "queue_waiting")).toBe(0);
    expect(await readChecks(crew.ingress)).toEqual({ accepting: "ok", store: "ok", slack: "ok" });
    const told = ["role", "platform_connected", "queue_places"] as const;
    const readTold = (service: RunningService) => Promise.all(told.map((name) => readMetric(service, name)));
    expect(await readTold(crew.ingress)).toEqual([1, 1, 0]);
    for (const worker of crew.workers) expect(await readTold(worker)).toEqual([1, 0, 16]);
    for (const worker of crew.workers) {
      expect(await readChecks(worker)).toEqual({ accepting: "ok", store: "ok" });
      expect((await fetch(`${worker.url}/slack/events`, { method: "POST" })).status).toBe(404);
    }
  });

  test("hear a pressed Stop, an edit and a deletion of the question, wherever it is answered", async () => {
    const { slack, ada, general } = scene();
    // Where an answer is posted and edited, its button stands under it.
    slack.setStreaming("unknown_method");
    onTestFinished(() => slack.setStreaming("on"));
    const slowly = `At 20 tokens per second, say: ${NUMBERS}`;
    const stopped = ada.mention(general, slowly);
    await ada.press(await untilGrowing(slack, general, stopped), "stop");
    const [words] = await answersIn(slack, general, stopped);
    expect(words).toMatch(/stopped/i);
    expect(words).not.toContain("150");

    const edited = ada.mention(general, slowly);
    await untilGrowing(slack, general, edited);
    ada.edit(edited, `<@${slack.workspace.bot.id}> Say: something else`);
    await slack.until(() => slack.texts(general, edited).join() === "something else", "the answer to the edit");

    const deleted = ada.mention(general, slowly);
    await untilGrowing(slack, general, deleted);
    ada.delete(deleted);
    await slack.until(() => slack.answers(general, deleted).every((answer) => answer.isDeleted), "the answer to go");
  });

  test("draw, and draw again from a picture that the gateway fetches at the ingress", async () => {
    const { slack, ada, general } = scene();
    const picture = (text: string) =>
      slack.until(() => slack.answers(general).find(({ states }) => states.at(-1)?.shown.includes(text)), text);
    await ada.command("/imagine", "a lighthouse", general);
    await ada.press(await picture("1024 × 1024"), "vary");
    await picture("1 reference picture");
  });

  test("hear Slack's own Stop", async () => {
    const { slack, ada, general } = scene();
    const asked = ada.mention(general, `At 20 tokens per second, say: ${NUMBERS}`);
    ada.stop(await untilGrowing(slack, general, asked));
    await slack.until(() => /stopped/i.test(slack.texts(general, asked).join()), "the end");
    expect(slack.answers(general, asked)).toHaveLength(1);
  });
});

describe.skipIf(isRedisMissing)(
  "an ingress and two workers on Slack, one of which is lost or doubled (needs redis-server)",
  () => {
    test("lose a worker in the middle of an answer, which the other one ends in the same message", async () => {
      const { slack, ada, general, crew } = await startSockets();
      const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
      await untilGrowing(slack, general, asked);
      await (await crew.atWork())?.busy.end("SIGKILL");
      expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
      expect(slack.answers(general, asked)).toHaveLength(1);
    });

    test("lose the ingress in the middle of an answer, which is ended; the next ingress goes on", async () => {
      const { slack, ada, general, crew } = await startSockets();
      const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
      await untilGrowing(slack, general, asked);
      await crew.ingress.end("SIGKILL");
      expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);

      await crew.open("ingress");
      ada.say(general, "Say: onwards", { thread: asked });
      expect(await answersIn(slack, general, asked, 2)).toEqual([NUMBERS, "onwards"]);
    });

    test("answer once what is delivered to two ingresses over HTTP, behind a balancer", async () => {
      const slack = await startSlack();
      const ada = slack.user({ name: "Ada" });
      const general = slack.channel({ name: "general", members: [ada] });
      const { botToken: SLACK_BOT_TOKEN, apiUrl: SLACK_API_URL, signingSecret: SLACK_SIGNING_SECRET } = slack;
      const crew = await startCrew({ SLACK_BOT_TOKEN, SLACK_API_URL, SLACK_SIGNING_SECRET });
      const other = await crew.open("ingress");
      slack.deliverTo(`${crew.ingress.url}/slack/events`);
      const asked = ada.mention(general, "Say: one");
      await slack.acknowledged();
      slack.deliverTo(`${other.url}/slack/events`);
      await slack.redeliver(asked);
      // What comes before the answer has begun is answered with it, in one message.
      expect(await answersIn(slack, general, asked)).toEqual(["one"]);
      ada.say(general, "Say: two", { thread: asked });
      expect(await answersIn(slack, general, asked, 2)).toEqual(["one", "two"]);
    });
  },
);
