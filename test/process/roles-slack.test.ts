import { describe, expect, onTestFinished, test } from "vitest";
import { openSlack } from "../../lab/slack-sim/control.ts";
import type { Channel, Message } from "../../lab/slack-sim/world.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import type { RunningService } from "../../lab/support/service.ts";
import { eventually } from "../support/eventually.ts";
import type { OnEnd } from "../support/listen.ts";
import type { Slack } from "../support/slack.ts";
import { readMetric, shareScene, startCrew } from "./crew.ts";
import { answersIn } from "./slack-service.ts";

const NUMBERS = Array.from({ length: 150 }, (_, index) => String(index + 1)).join(" ");

async function startSockets(onEnd: OnEnd) {
  const slack = await openSlack();
  onEnd(async () => {
    await slack.close();
    slack.assertClean();
  });
  const ada = slack.user({ name: "Ada" });
  const env = { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl };
  const crew = await startCrew(env, onEnd);
  await slack.until(() => slack.connections() >= 2, "the sockets");
  return { slack, ada, crew };
}

async function untilGrowing(slack: Slack, channel: Channel, asked: Message): Promise<Message> {
  return slack.until(() => slack.answers(channel, asked).find(({ states }) => states.length >= 3), "a growing answer");
}

async function readChecks({ url }: RunningService): Promise<object> {
  return ((await (await fetch(`${url}/readyz`)).json()) as { checks: object }).checks;
}

describe.skipIf(isRedisMissing)("an ingress and two workers on Slack (needs redis-server)", () => {
  const shared = shareScene(startSockets);
  /** A separate channel for each test, in the shared scene. */
  function scene() {
    const { slack, ada, crew } = shared();
    return { slack, ada, crew, general: slack.channel({ name: `room-${(rooms += 1)}`, members: [ada] }) };
  }
  let rooms = 0;

  test("workers answer the questions that only the ingress receives, and the ingress writes nothing", async () => {
    const { slack, ada, general, crew } = scene();
    const readTurns = () => Promise.all(crew.workers.map((worker) => readMetric(worker, "turns_total")));
    const before = await readTurns();
    const asked = ada.mention(general, "Say: hello");
    expect(await answersIn(slack, general, asked)).toEqual(["hello"]);
    expect(slack.connections()).toBe(2);
    expect(await readMetric(crew.ingress, "turns_total")).toBe(0);
    // The count changes only after people see the end of the answer.
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

  test("a press of Stop, an edit and a deletion reach the worker that answers the question", async () => {
    const { slack, ada, general } = scene();
    // If Slack's answers are posted and edited instead of streamed, they have buttons below them.
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

  test("workers create an image from an image that the gateway fetches from the ingress", async () => {
    const { slack, ada, general } = scene();
    const picture = (text: string) =>
      slack.until(() => slack.answers(general).find(({ states }) => states.at(-1)?.shown.includes(text)), text);
    await ada.command("/imagine", "a lighthouse", general);
    await ada.press(await picture("1024 × 1024"), "vary");
    await picture("1 reference picture");
  });

  // The following tests kill processes.
  test("an answer ends although the ingress was killed, and the next ingress continues the conversation", async () => {
    const { slack, ada, general, crew } = scene();
    const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
    await untilGrowing(slack, general, asked);
    await crew.ingress.end("SIGKILL");
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);

    await crew.open("ingress");
    ada.say(general, "Say: onwards", { thread: asked });
    expect(await answersIn(slack, general, asked, 2)).toEqual([NUMBERS, "onwards"]);
  });

  test("another worker finishes the answer of a killed worker in the same message", async () => {
    const { slack, ada, general, crew } = scene();
    const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
    await untilGrowing(slack, general, asked);
    await (await crew.atWork())?.busy.end("SIGKILL");
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
  });
});
