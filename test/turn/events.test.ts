import { describe, expect, test } from "vitest";
import { createMetrics } from "../../src/metrics.ts";
import { type ObservedTurn, runObserved } from "../../src/turn/events.ts";
import { newRecord } from "../../src/turn/record.ts";
import { message } from "../support/events.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { silent } from "../support/log.ts";

function observe(scripts: Step[][], { attempts = 1 } = {}) {
  const { gateway, requests } = fakeGateway(...scripts);
  const metrics = createMetrics();
  const question = message("Hello");
  const turn: ObservedTurn = {
    deps: {
      gateway,
      tools: [],
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
    show: () => {},
    acceptedAt: Date.now(),
    context: { messages: [], notices: [], oldestShownId: undefined, written: [], count: 0 },
    used: { promptTokens: 0, completionTokens: 0, estimatedTokens: 0 },
    pieces: [],
  };
  return { turn, requests, metrics };
}

describe("the events of a turn", () => {
  test("come from the model and the system prompt of the attempt", async () => {
    const { turn, requests } = observe([["Hello", " you."]]);
    expect(await Array.fromAsync(runObserved(turn))).toEqual([
      { type: "text", text: "Hello" },
      { type: "text", text: " you." },
      { type: "finish", reason: "stop" },
    ]);
    expect(requests).toMatchObject([
      { model: "large", user: "test/ada", messages: [{ content: "Be a pirate." }, { content: "Hello" }] },
    ]);
  });

  test("leave the context with what was there before counted, and the answer after it", async () => {
    const { turn } = observe([["Hello"]]);
    await Array.fromAsync(runObserved(turn));
    expect(turn.context).toMatchObject({ count: 2, notices: ["a notice"] });
    expect(turn.context.messages.slice(turn.context.count)).toEqual([{ role: "assistant", content: "Hello" }]);
  });

  test("are counted as open only while they come", async () => {
    const { turn, metrics } = observe([["Hello", new Error("cut")]]);
    await expect(Array.fromAsync(runObserved(turn))).rejects.toThrow("cut");
    expect((await metrics.render()).body).toMatch(/upstream_streams_open 0$/m);
  });

  test("do not begin when they began too often without an end", async () => {
    const { turn, requests } = observe([["Hello"]], { attempts: 51 });
    await expect(Array.fromAsync(runObserved(turn))).rejects.toThrow("too often");
    expect(requests).toEqual([]);
  });
});
