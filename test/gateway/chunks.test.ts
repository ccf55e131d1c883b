import { describe, expect, test } from "vitest";
import {
  type AssistantMessage,
  applyDelta,
  isWholeCall,
  settleCalls,
  type ToolCall,
  toSendable,
} from "../../src/gateway/chunks.ts";

const EMPTY: AssistantMessage = { role: "assistant", content: "" };

function call(id: string, args = "{}", name = "look"): ToolCall {
  return { id, type: "function", function: { name, arguments: args } };
}

describe("the calls of a finished message", () => {
  const idsOf = (...ids: string[]) =>
    settleCalls({ ...EMPTY, tool_calls: ids.map((id) => call(id)) }).tool_calls?.map(({ id }) => id);

  test("each call of a finished message has a unique id, its original one if possible", () => {
    expect(idsOf("a", "b")).toEqual(["a", "b"]);
    expect(idsOf("", "a", "")).toEqual(["call_0", "a", "call_2"]);
    for (const ids of [
      ["call_1", "call_1"],
      ["", "call_0", "call_0"],
      ["call_2", "call_2", "call_2"],
    ])
      expect(new Set(idsOf(...ids)).size).toBe(ids.length);
  });

  test("the calls of a finished message have no gaps and no empty names", () => {
    const message = applyDelta(EMPTY, { tool_calls: [{ index: 2, id: "c", function: { name: "f" } }, { index: 3 }] });
    expect(settleCalls(message).tool_calls).toEqual([call("c", "", "f")]);
  });

  test("the calls of a finished message are sent back with JSON arguments", () => {
    const calls = [call("a", '{"x":1}'), call("b", '{"x":'), call("c", "")];
    expect(calls.map(isWholeCall)).toEqual([true, false, false]);
    const sent = toSendable({ ...EMPTY, tool_calls: calls }).tool_calls;
    expect(sent?.map((each) => each.function.arguments)).toEqual(['{"x":1}', "{}", "{}"]);
    expect(toSendable(EMPTY)).toBe(EMPTY);
  });
});
