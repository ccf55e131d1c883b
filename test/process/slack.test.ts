import { describe, expect, test } from "vitest";
import { answersIn, open, start } from "./slack-service.ts";

describe.concurrent("the service on Slack", () => {
  test("the service answers a mention in its thread and remembers the thread after a restart", async ({
    onTestFinished,
  }) => {
    const { slack, ada, general, service, dataDir } = await start("Socket Mode", {}, onTestFinished);
    const ready = await fetch(`${service.url}/readyz`);
    expect(await ready.json()).toMatchObject({ status: "ready", checks: { slack: "ok" } });
    const root = ada.mention(general, "My name is Ada.");
    const [first] = await answersIn(slack, general, root);
    expect(first).not.toBe("");
    expect(await service.end("SIGTERM")).toBe(0);
    await open(slack, "Socket Mode", dataDir, {}, onTestFinished);
    ada.say(general, "What is my name?", { thread: root });
    const answers = await answersIn(slack, general, root, 2);
    expect(answers[1]).toContain("Ada");
  });

  test("a service killed before its answer answers once, although Slack delivers the question again", async ({
    onTestFinished,
  }) => {
    const { slack, ada, general, service, dataDir } = await start("HTTP", {}, onTestFinished);
    const asked = ada.mention(general, "At 1 tokens per second, say: once");
    await slack.acknowledged();
    await service.end("SIGKILL");
    await open(slack, "HTTP", dataDir, {}, onTestFinished);
    await slack.redeliver(asked);
    expect(await answersIn(slack, general, asked)).toEqual(["once"]);
    const last = ada.mention(general, "Say: goodbye");
    expect(await answersIn(slack, general, last)).toHaveLength(1);
    expect(slack.texts(general, asked)).toEqual(["once"]);
  });

  test.for(["on", "unknown_method"] as const)(
    "a killed service completes its answer in one message, with streaming %s",
    async (streaming, { onTestFinished }) => {
      const { slack, ada, general, service, dataDir } = await start("Socket Mode", {}, onTestFinished);
      slack.setStreaming(streaming);
      const numbers = Array.from({ length: 120 }, (_, index) => String(index + 1)).join(" ");
      const asked = ada.mention(general, `At 60 tokens per second, say: ${numbers}`);
      const hasBegun = () => slack.answers(general, asked).some(({ states }) => states.length >= 2);
      await slack.until(hasBegun, "the beginning of the answer");
      await service.end("SIGKILL");
      await open(slack, "Socket Mode", dataDir, {}, onTestFinished);
      expect(await answersIn(slack, general, asked)).toEqual([numbers]);
    },
  );
});
