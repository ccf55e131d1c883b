import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ChatMessage, TokenUsage } from "../../src/gateway/chunks.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { OnText } from "../../src/reply/reply.ts";
import { NO_LEDGER } from "../../src/tools/ledger.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { runTurn, type TurnDeps } from "../../src/turn/turn.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  schema: z.object({ value: z.number() }),
  timeoutMs: 1_000,
  run: async ({ value }) => String(value * 2),
  describeCall: ({ value }) => `doubling ${value}`,
});

const call = (index: number, value: number) => ({
  tool_calls: [
    {
      index,
      id: `call${index}`,
      type: "function" as const,
      function: { name: "double", arguments: JSON.stringify({ value }) },
    },
  ],
});

function setUp(...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const usages: Array<TokenUsage & { estimated: boolean }> = [];
  const progress: string[] = [];
  const reasoning: string[] = [];
  const deps: TurnDeps = {
    gateway,
    tools: [double],
    model: "fake",
    fields: {},
    mustAsk: false,
    maxRounds: 4,
    context: { conversationId: "test:a" },
    ledger: NO_LEDGER,
    isAllowed: async () => false,
    user: "someone",
    onStep: ({ id, title, state }) => void progress.push(`${id} ${title}: ${state}`),
    onReasoning: (text) => void reasoning.push(text),
    onRetry: () => {},
    reserve: async () => ({
      maxTokens: undefined,
      confirm: async () => {},
      settle: (used) => void usages.push(...(used ? [{ ...used.usage, estimated: used.isEstimated }] : [])),
    }),
    onDetour: () => {},
    onAdapted: () => {},
    showPictures: async () => {},
    mayAsk: () => true,
  };
  const messages: ChatMessage[] = [{ role: "user", content: "What is twice 21?" }];
  const controller = new AbortController();
  return {
    deps,
    messages,
    requests,
    usages,
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

describe("runTurn", () => {
  test("passes the text on and ends with the gateway's word", async () => {
    const { turn, messages } = setUp(["Forty", "-two", { finish: "length" }]);
    expect(await collect(turn)).toEqual({ text: "Forty-two", finish: "length", error: undefined });
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "Forty-two" });
  });

  test("runs the tools the model calls and asks again with their results", async () => {
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

  test("answers every one of several calls, also where the model left a number out or gave no id", async () => {
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

  test("ends a model that never stops calling tools, and offers none in the last round", async () => {
    const { turn, requests, messages } = setUp([call(0, 1)]);
    expect((await collect(turn)).finish).toBe("tool_limit");
    expect(requests.map(({ tools }) => tools !== undefined)).toEqual([true, true, true, false]);
    expect(messages.at(-1)?.role).toBe("tool");
  });

  test("keeps the text of a round that was cut, and not its calls", async () => {
    const cut = new GatewayError("interrupted", "The answer broke off.");
    const { turn, messages } = setUp(["So far", call(0, 1), cut]);
    expect(await collect(turn)).toMatchObject({ text: "So far", error: cut });
    expect(messages.slice(1)).toEqual([{ role: "assistant", content: "So far" }]);
  });

  test("ends as cut off where the gateway cut the arguments of a call, and asks no more", async () => {
    const half = { tool_calls: [{ index: 0, id: "c", function: { name: "double", arguments: '{"val' } }] };
    const { turn, messages, requests } = setUp(["So far", half, { finish: "length" }]);
    expect(await collect(turn)).toMatchObject({ text: "So far", finish: "length" });
    expect(requests).toHaveLength(1);
    expect(messages.slice(1)).toEqual([{ role: "assistant", content: "So far" }]);
  });

  test.each(["content_filter", "SAFETY", "refusal", "network_error"])(
    "makes no call of an answer that is not whole: %s",
    async (finish) => {
      const { turn, progress, requests } = setUp(["So far", call(0, 1), { finish }]);
      expect(await collect(turn)).toMatchObject({ text: "So far", finish });
      expect({ progress, requests: requests.length }).toEqual({ progress: [], requests: 1 });
    },
  );

  test("keeps earlier rounds whole when a later one is cut", async () => {
    const { turn, messages } = setUp([call(0, 1)], ["half", new GatewayError("stalled", "Nothing came.")]);
    await collect(turn);
    expect(messages.slice(1).map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
  });

  test("stops with the reason of its signal, in the middle of a stream", async () => {
    const { turn, messages, controller } = setUp(["So far", new Promise(() => {})]);
    const said = Promise.withResolvers<string>();
    const answer = turn(said.resolve);
    expect(await said.promise).toBe("So far");
    controller.abort("stopped");
    await expect(answer).rejects.toBe("stopped");
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "So far" });
  });

  test("keeps what was said when its taker fails", async () => {
    const { turn, messages } = setUp(["So far", new Promise(() => {})]);
    const fail = () => {
      throw new Error("full");
    };
    await expect(turn(fail)).rejects.toThrow("full");
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "So far" });
  });

  test("counts the model's thoughts as tokens, and not as a part of the answer", async () => {
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

  test("estimates tokens of an answer that was cut in calls of which the first has the index 1", async () => {
    const { turn, usages } = setUp([call(1, 1), call(1, 2), new GatewayError("interrupted", "The answer broke off.")]);
    expect((await collect(turn)).error).toMatchObject({ kind: "interrupted" });
    expect(usages).toMatchObject([{ estimated: true }]);
  });

  test("estimates tokens where the gateway counts none, also of an answer that was cut", async () => {
    const { turn, usages } = setUp(["So far", new GatewayError("interrupted", "The answer broke off.")]);
    await collect(turn);
    expect(usages).toHaveLength(1);
    expect(usages[0]).toMatchObject({ estimated: true });
    expect(usages[0]?.completion_tokens).toBeGreaterThan(0);
  });
});
