import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { createQuickScheduler } from "../../lab/support/quick-scheduler.ts";
import type { StreamOptions } from "../../src/gateway/client.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Button, Draft } from "../../src/port/sink.ts";
import { createPacedSinks } from "../../src/reply/paced-sink.ts";
import { startStage as startDiscordStage } from "../adapters/discord/stage.ts";
import { startStage as startSlackStage } from "../adapters/slack/stage.ts";
import { eventually } from "../support/eventually.ts";
import { startImageGateway } from "../support/image-gateway.ts";

const never = new AbortController().signal;
const ADDRESS = { platform: "test", channelId: "general" };
const STOP: Button = { action: "stop", turnId: "job.0", label: "Stop" };
const draft = (markdown: string, buttons: Button[] = []): Draft => ({ markdown, buttons, streaming: false });

function start(gapMs = 1) {
  const platform = fakePlatform();
  const scheduler = createQuickScheduler(gapMs);
  const metrics = createMetrics();
  const sinkOf = createPacedSinks({ adapterOf: () => platform.adapter, scheduler, metrics, right: NO_RIGHT });
  return { ...platform, scheduler, metrics, paced: sinkOf(ADDRESS) };
}

describe("a paced sink", () => {
  test("a paced sink retries a call when the platform asks for time, and counts the retry", async () => {
    const { paced, texts, calls, setTrouble, metrics } = start();
    setTrouble(() => (calls.length < 3 ? { kind: "rate-limited", retryAfterMs: 1 } : undefined));
    await paced.post(draft("hello"), "n", never);
    expect(texts()).toEqual(["hello"]);
    expect(calls).toEqual(["post", "post", "post"]);
    const { body } = await metrics.render();
    expect(body).toContain('palaver_rate_limits_total{side="platform"} 2');
    expect(body).toContain('palaver_platform_calls_total{platform="test",call="post"} 3');
  });

  test("a paced sink leaves every other failure to the caller", async () => {
    const { paced, calls, setTrouble } = start();
    for (const kind of ["unavailable", "gone", "forbidden"] as const) {
      setTrouble(() => ({ kind }));
      await expect(paced.edit("test:1", draft("x"), never)).rejects.toMatchObject({ kind });
    }
    expect(calls).toHaveLength(3);
  });

  test("a paced sink sends final edits before others", async () => {
    const { paced, calls, sink } = start(0.02);
    const { id } = await sink.post(draft("status"), "status", never);
    await paced.post(draft("before"), "first", never);
    calls.length = 0;
    const edit = paced.edit(id, draft("drawing", [STOP]), never);
    await Promise.all([
      edit,
      paced.upload([], draft("picture"), "n", never),
      paced.edit("test:reply2", draft("end"), never),
    ]);
    expect(calls.at(-1)).toBe("edit");
    expect(calls.toSorted()).toEqual(["edit", "edit", "upload"]);
  });

  test("a paced sink does not make a waiting call that the caller gave up", async () => {
    const { paced, calls } = start(60);
    await paced.post(draft("first"), "1", never);
    const controller = new AbortController();
    const waiting = paced.post(draft("second"), "2", controller.signal);
    controller.abort("over");
    await expect(waiting).rejects.toBe("over");
    expect(calls).toEqual(["post"]);
  });

  test("a paced sink reports the outcome of a call that the caller gave up in flight", async () => {
    const { paced, setTrouble, calls } = start();
    const gate = Promise.withResolvers<void>();
    setTrouble(() => gate.promise);
    const controller = new AbortController();
    const posting = paced.post(draft("first"), "1", controller.signal);
    await eventually(() => calls).toEqual(["post"]);
    controller.abort("over");
    gate.resolve();
    expect(await posting).toEqual({ id: "test:reply1" });
  });

  test("a paced sink makes no calls once its scheduler is closed", async () => {
    const { paced, scheduler } = start();
    scheduler.close();
    await expect(paced.post(draft("late"), "1", never)).rejects.toThrow("no longer paced");
  });
});

/** The whole bot with a sandbox that creates images, at the real service's pace. */
async function startBot(adapterOf: () => Adapter) {
  const words = Array.from({ length: 60 }, (_, index) => `word ${index} `);
  const { gateway: images } = await startImageGateway();
  async function streamChat(_request: ChatRequest, _signal: AbortSignal, { onChunk }: StreamOptions) {
    for (const content of words) {
      onChunk({
        id: "1",
        model: "fake",
        choices: [{ index: 0, delta: { content }, finish_reason: null }],
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  return startEngine({
    gateway: { ...images, streamChat },
    imageModel: "sandbox-image",
    model: "fake",
    adapterOf,
    isPaced: true,
  });
}

describe("four images next to an answer", () => {
  test("Discord refuses none of four images because of its rate limit", async () => {
    const stage = await startDiscordStage({ listens: false });
    const { discord, channel } = stage;
    const { accept, handle } = await startBot(() => stage.adapter);
    const reply = { platform: "discord", channelId: channel.id };
    await accept(message("tell me", { reply }));
    await handle({ ...command("imagine", "a fox --count 4"), reply });
    expect(discord.requests.filter(({ status }) => status === 429)).toEqual([]);
    expect(discord.requests.filter(({ fileNames }) => fileNames.length > 0)).toHaveLength(4);
  });

  test("Slack refuses none of four images because of its rate limit", async () => {
    const stage = await startSlackStage({ listens: false });
    const { slack, general, ada } = stage;
    const { accept, handle } = await startBot(() => stage.adapter);
    const extra = { team: slack.workspace.id, user: ada.id };
    const reply = { platform: "slack", channelId: general.id, extra };
    const asked = ada.say(general, "tell me");
    await accept(message("tell me", { reply: { ...reply, threadId: asked.ts } }));
    await handle({ ...command("imagine", "a fox --count 4"), reply });
    expect(
      slack.answers(general).filter(({ content }) => content.blocks.some(({ type }) => type === "image")),
    ).toHaveLength(4);
  });
});
