import { describe, expect, test } from "vitest";
import type { Channel } from "../../lab/slack-sim/world.ts";
import { startHeldGateway } from "../support/held-gateway.ts";
import type { Slack } from "../support/slack.ts";
import { answersIn, open, start } from "./slack-service.ts";

const EIGHT = "one two three four five six seven eight";
const MINUTE_MS = 60_000;

describe.concurrent("the service on Slack in trouble", () => {
  test.for([
    ["on", "chat.startStream"],
    ["on", "chat.stopStream"],
    ["unknown_method", "chat.postMessage"],
  ] as const)(
    "a service killed between a call and its record has one answer, with streaming %s and at %s",
    async ([streaming, method], { onTestFinished }) => {
      const { slack, ada, general, service, dataDir } = await start("HTTP", {}, onTestFinished);
      slack.setStreaming(streaming);
      slack.failNext(method, { isDone: true, answersLateMs: 60_000 });
      const asked = ada.mention(general, `At 30 tokens per second, say: ${EIGHT}`);
      const looks = () => slack.answers(general, asked)[0]?.states.length ?? 0;
      const isCalled = () => slack.requests.some((request) => request.method === method) && looks() > 0;
      await slack.until(isCalled, "the call");
      await service.end("SIGKILL");
      await open(slack, "HTTP", dataDir, {}, onTestFinished);
      // A recovered stream ends before the missing text is written.
      const isWhole = () => slack.texts(general, asked)[0] === EIGHT;
      await slack.until(isWhole, "the whole answer");
      const last = ada.mention(general, "Say: goodbye");
      expect(await answersIn(slack, general, last)).toEqual(["goodbye"]);
      expect(slack.answers(general, asked)).toHaveLength(1);
    },
  );

  test("a service whose Slack token is revoked exits with a plain sentence, and answers again with a valid token", async ({
    onTestFinished,
  }) => {
    const gateway = await startHeldGateway("here again", onTestFinished);
    const { slack, ada, general, service, dataDir } = await start("HTTP", gateway.env, onTestFinished);
    ada.mention(general, "Count to ten");
    await gateway.say("one two");
    await slack.until(() => hasShown(slack, general, "one"), "the first words");
    slack.revoke("token_revoked");
    await gateway.say(" three four");
    // This signal has no effect, so the service must exit without one.
    expect(await service.end("SIGCONT")).toBe(1);
    expect(service.lines.find((line) => line.includes('"fatal"'))).toMatch(
      /does not accept the bot token \(token_revoked\)\. .*SLACK_BOT_TOKEN/,
    );
    slack.workspace.revoked = undefined;
    await open(slack, "HTTP", dataDir, gateway.env, onTestFinished);
    const again = ada.mention(general, "Are you there?");
    expect(await answersIn(slack, general, again)).toEqual(["here again"]);
  });

  test.for(["on", "unknown_method"] as const)(
    "an answer of more than five minutes is shown whole, with streaming %s",
    async (streaming, { onTestFinished }) => {
      const { slack, ada, general } = await start("HTTP", {}, onTestFinished);
      slack.setStreaming(streaming);
      const words = Array.from({ length: 90 }, (_, index) => String(index + 1)).join(" ");
      const asked = ada.mention(general, `At 30 tokens per second, say: ${words}`);
      for (let minute = 1; minute <= 6; minute++) {
        await slack.until(() => hasShown(slack, general, String(minute * 10)), "more of the answer");
        slack.advance(MINUTE_MS);
      }
      await slack.until(() => slack.texts(general, asked)[0] === words, "the whole answer");
      expect(slack.answers(general, asked)).toHaveLength(1);
    },
  );

  test("an answer names the missing scope if the service cannot read a file", async ({ onTestFinished }) => {
    const { slack, ada, general } = await start("Socket Mode", {}, onTestFinished);
    slack.workspace.scopes.delete("files:read");
    const mention = `<@${slack.workspace.bot.id}> Say: done`;
    const asked = ada.upload(general, [{ name: "notes.txt", bytes: Buffer.from("private") }], mention);
    const [answer] = await answersIn(slack, general, asked);
    expect(answer).toMatch(/I couldn't read `notes\.txt`: .*the scope files:read is missing/);
  });

  test("the service still answers elsewhere after a channel is archived mid-answer", async ({ onTestFinished }) => {
    const { slack, ada, general } = await start("HTTP", {}, onTestFinished);
    const asked = ada.mention(general, `At 10 tokens per second, say: ${EIGHT}`);
    await slack.until(() => hasShown(slack, general, "one"), "the first word");
    general.isArchived = true;
    const direct = ada.dm("Say: still here");
    expect(await answersIn(slack, direct.channel, direct)).toEqual(["still here"]);
    expect(EIGHT).toContain(slack.texts(general, asked)[0]);
  });
});

function hasShown(slack: Slack, channel: Channel, word: string): boolean {
  return slack.texts(channel).some((text) => text.split(" ").includes(word));
}
