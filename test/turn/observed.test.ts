import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createMetrics } from "../../src/metrics/metrics.ts";
import type { Step as ReplyStep } from "../../src/port/sink.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { type ObservedTurn, runObserved } from "../../src/turn/observed.ts";
import { newRecord } from "../../src/turn/record.ts";
import { message } from "../support/events.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { silent } from "../support/log.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  schema: z.object({}),
  timeoutMs: 1_000,
  run: async () => "rain",
  describeCall: () => "looking out of the window",
});

function observe(scripts: Step[][], { attempts = 1 } = {}) {
  const { gateway, requests } = fakeGateway(...scripts);
  const metrics = createMetrics();
  const question = message("Hello");
  const steps: ReplyStep[] = [];
  const turn: ObservedTurn = {
    deps: {
      gateway,
      tools: [look],
      readContext: async (_record, _messages, systemPrompt) => ({
        messages: [
          { role: "system", content: systemPrompt },
          { role: "user", content: "Hello" },
        ],
        notices: ["a notice"],
        oldestShownId: undefined,
        written: [],
      }),
      pseudonym: (platform, userId) => `${platform}/${userId}`,
      metrics,
      log: silent,
    },
    record: { ...newRecord([question], [question]), attempts },
    messages: [question],
    model: "large",
    systemPrompt: "Be a pirate.",
    signal: new AbortController().signal,
    mustAsk: false,
    show: () => {},
    noteStep: (step) => void steps.push(step),
    acceptedAt: Date.now(),
    context: { messages: [], notices: [], oldestShownId: undefined, written: [], count: 0 },
    used: { promptTokens: 0, completionTokens: 0, estimatedTokens: 0 },
    pieces: [],
  };
  return { turn, requests, metrics, steps };
}

const ignore = () => {};

describe("an observed turn", () => {
  test("is asked of the model of the attempt, with its system prompt", async () => {
    const { turn, requests } = observe([["Hello", " you."]]);
    const texts: string[] = [];
    expect(await runObserved(turn, (text) => texts.push(text))).toBe("stop");
    expect(texts).toEqual(["Hello", " you."]);
    expect(requests).toMatchObject([
      { model: "large", user: "test/ada", messages: [{ content: "Be a pirate." }, { content: "Hello" }] },
    ]);
  });

  test("leaves the context with what was there before counted, and the answer after it", async () => {
    const { turn } = observe([["Hello"]]);
    await runObserved(turn, ignore);
    expect(turn.context).toMatchObject({ count: 2, notices: ["a notice"] });
    expect(turn.context.messages.slice(turn.context.count)).toEqual([{ role: "assistant", content: "Hello" }]);
  });

  test("is counted as open only while it streams", async () => {
    const { turn, metrics } = observe([["Hello", new Error("cut")]]);
    await expect(runObserved(turn, ignore)).rejects.toThrow("cut");
    expect((await metrics.render()).body).toMatch(/upstream_streams_open 0$/m);
  });

  test("has steps of its own in each attempt", async () => {
    const call = { index: 0, id: "c", type: "function" as const, function: { name: "look", arguments: "{}" } };
    const { turn, steps } = observe([[{ tool_calls: [call] }], ["It rains."]], { attempts: 2 });
    await runObserved(turn, ignore);
    const step = { id: "2.1.0", title: "looking out of the window" };
    expect(steps).toEqual([
      { ...step, state: "running" },
      { ...step, state: "done" },
    ]);
  });
});
