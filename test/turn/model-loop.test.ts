import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fakeGateway, type Step } from "../../lab/support/fake-gateway.ts";
import type { ChatMessage, TokenUsage } from "../../src/gateway/chunks.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { OnText } from "../../src/reply/reply.ts";
import { NO_LEDGER } from "../../src/tools/ledger.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { runTurn, type TurnDeps } from "../../src/turn/model-loop.ts";
import { toCall } from "../support/tool-calls.ts";
import { loopDeps } from "./loop-stage.ts";

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  schema: z.object({ value: z.number() }),
  timeoutMs: 1_000,
  run: async ({ value }) => String(value * 2),
  describeCall: ({ value }) => `doubling ${value}`,
});

const call = (index: number, value: number) => {
  const [called] = toCall("double", { value }, `call${index}`).tool_calls;
  return { tool_calls: [{ ...called, index }] };
};

function setUp(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const usages: Array<TokenUsage & { estimated: boolean }> = [];
  const unspent: string[] = [];
  const progress: string[] = [];
  const reasoning: string[] = [];
  const deps: TurnDeps = {
    ...loopDeps(gateway, double, NO_LEDGER),
    onStep: ({ id, title, state }) => void progress.push(`${id} ${title}: ${state}`),
    onReasoning: (text) => void reasoning.push(text),
    reserve: async () => ({
      maxTokens: undefined,
      settle(outcome) {
        if (typeof outcome === "string") unspent.push(outcome);
        else usages.push({ ...outcome.usage, estimated: outcome.isEstimated });
      },
    }),
  };
  const messages: ChatMessage[] = [{ role: "user", content: "What is twice 21?" }];
  const controller = new AbortController();
  return {
    deps,
    messages,
    requests,
    usages,
    unspent,
    progress,
    reasoning,
    controller,
    turn: (onText: OnText) => runTurn(messages, deps, onText, controller.signal),
  };
}

async function collect(
  turn: (onText: OnText) => Promise<string>,
): Promise<{ text: string; finish: string | undefined; error: unknown }> {
  let text = "";
  try {
    const finish = await turn((piece) => void (text += piece));
    return { text, finish, error: undefined };
  } catch (error) {
    return { text, finish: undefined, error };
  }
}

describe("a turn's loop over the model and its tools", () => {
  test("runTurn runs the tools that the model calls and asks again with their results", async () => {
    const { turn, messages, requests, progress } = setUp(["Let me see.", call(0, 21)], ["It is 42."]);
    expect((await collect(turn)).text).toBe("Let me see.\n\nIt is 42.");
    expect(requests[1]?.messages.slice(-2)).toEqual([
      expect.objectContaining({
        role: "assistant",
        content: "Let me see.",
        tool_calls: [expect.objectContaining({ id: "call0" })],
      }),
      { role: "tool", tool_call_id: "call0", content: "42" },
    ]);
    expect(messages).toHaveLength(4);
    expect(progress).toEqual(["1.0 doubling 21: running", "1.0 doubling 21: done"]);
  });

  test("runTurn answers every one of several calls, even without an index or an id", async () => {
    const third = { tool_calls: [{ index: 3, function: { name: "double", arguments: '{"value":3}' } }] };
    const { turn, requests } = setUp([call(0, 1), third], ["done"]);
    await collect(turn);
    const [assistant, ...results] = requests[1]?.messages.slice(1) ?? [];
    expect(assistant).toMatchObject({ tool_calls: [{ id: "call0" }, { id: "call_1" }] });
    expect(results).toEqual([
      { role: "tool", tool_call_id: "call0", content: "2" },
      { role: "tool", tool_call_id: "call_1", content: "6" },
    ]);
  });

  test("runTurn ends with a round without tools if the model never stops calling tools", async () => {
    const { turn, requests, messages } = setUp([call(0, 1)]);
    expect((await collect(turn)).finish).toBe("tool_limit");
    expect(requests.map(({ tools }) => tools !== undefined)).toEqual([true, true, true, false]);
    expect(messages.at(-1)?.role).toBe("tool");
  });

  test("runTurn keeps the text of an interrupted round but not its calls", async () => {
    const cut = new GatewayError("interrupted", "The answer broke off.");
    const { turn, messages } = setUp(["So far", call(0, 1), cut]);
    expect(await collect(turn)).toMatchObject({ text: "So far", error: cut });
    expect(messages.slice(1)).toEqual([{ role: "assistant", content: "So far" }]);
  });

  test("runTurn ends as truncated if the gateway truncated a call's arguments, and asks no more", async () => {
    const half = { tool_calls: [{ index: 0, id: "c", function: { name: "double", arguments: '{"val' } }] };
    const { turn, messages, requests } = setUp(["So far", half, { finish: "length" }]);
    expect(await collect(turn)).toMatchObject({ text: "So far", finish: "length" });
    expect(requests).toHaveLength(1);
    expect(messages.slice(1)).toEqual([{ role: "assistant", content: "So far" }]);
  });

  test.each(["content_filter", "SAFETY", "refusal", "network_error"])(
    "runTurn makes no call of an incomplete answer: %s",
    async (finish) => {
      const { turn, progress, requests } = setUp(["So far", call(0, 1), { finish }]);
      expect(await collect(turn)).toMatchObject({ text: "So far", finish });
      expect({ progress, requests: requests.length }).toEqual({ progress: [], requests: 1 });
    },
  );

  test("runTurn keeps earlier rounds complete if a later one is interrupted", async () => {
    const { turn, messages } = setUp([call(0, 1)], ["half", new GatewayError("stalled", "Nothing came.")]);
    await collect(turn);
    expect(messages.slice(1).map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
  });

  test("runTurn stops with the reason of its signal, in the middle of a stream", async () => {
    const { turn, messages, controller } = setUp(["So far", new Promise(() => {})]);
    const said = Promise.withResolvers<string>();
    const answer = turn(said.resolve);
    expect(await said.promise).toBe("So far");
    controller.abort("stopped");
    await expect(answer).rejects.toBe("stopped");
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "So far" });
  });

  test("runTurn keeps the text if its consumer fails", async () => {
    const { turn, messages } = setUp(["So far", new Promise(() => {})]);
    const fail = () => {
      throw new Error("full");
    };
    await expect(turn(fail)).rejects.toThrow("full");
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "So far" });
  });

  test("runTurn counts the model's thoughts as tokens, and not as part of the answer", async () => {
    const [plain, thinking] = [
      setUp(["Yes."]),
      setUp([{ reasoning: "Is twice 21 a number? " }, { reasoning: "It is." }, "Yes."]),
    ];
    await collect(plain.turn);
    expect(await collect(thinking.turn)).toMatchObject({ text: "Yes.", finish: "stop" });
    expect(thinking.reasoning).toEqual(["Is twice 21 a number? ", "It is."]);
    expect(thinking.messages).toEqual(plain.messages);
    const [without, counted] = [plain, thinking].map(({ usages }) => usages[0]?.completion_tokens ?? 0);
    expect(counted).toBeGreaterThan(without ?? 0);
    expect(thinking.usages[0]).toMatchObject({ estimated: true });
  });

  test("runTurn estimates the tokens of an interrupted answer whose first call has the index 1", async () => {
    const { turn, usages } = setUp([call(1, 1), call(1, 2), new GatewayError("interrupted", "The answer broke off.")]);
    expect((await collect(turn)).error).toMatchObject({ kind: "interrupted" });
    expect(usages).toMatchObject([{ estimated: true }]);
    expect(usages[0]?.completion_tokens).toBeGreaterThan(0);
  });

  test.each([
    ["refused", new GatewayError("rate-limited", "Too many.", { status: 429 })],
    ["refused", new GatewayError("unreachable", "The connection broke.", { isCut: true })],
    ["unsent", new GatewayError("unreachable", "Nothing listens there.")],
    ["unsent", new GatewayError("overloaded", "It is paused.", { status: 500, isPause: true })],
  ])("runTurn settles a request without an answer as %s: %s", async (outcome, failure) => {
    const { turn, deps, usages, unspent } = setUp([]);
    deps.gateway = { ...deps.gateway, streamChat: () => Promise.reject(failure) };
    expect((await collect(turn)).error).toBe(failure);
    expect({ usages, unspent }).toEqual({ usages: [], unspent: [outcome] });
  });

  test("runTurn settles a request as unsent if it was stopped during the reservation", async () => {
    const { turn, deps, controller, requests, unspent } = setUp(["Forty-two"]);
    const { reserve } = deps;
    deps.reserve = async (need, signal) => {
      controller.abort("stopped");
      return reserve(need, signal);
    };
    expect(await collect(turn)).toMatchObject({ error: "stopped" });
    expect({ requests, unspent }).toEqual({ requests: [], unspent: ["unsent"] });
  });
});
