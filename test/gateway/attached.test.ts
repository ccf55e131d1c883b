import { describe, expect, test } from "vitest";
import { type Attached, joinAttached, setApart } from "../../src/gateway/attached.ts";
import { applyDelta, type ChatMessage, settleCalls, withoutAttached } from "../../src/gateway/chunks.ts";
import { type Answer, DONE, event, events, FINISH, startFaultServer } from "../support/fault-server.ts";
import { connect, open, readAnswer, request } from "../support/gateway-client.ts";

const call = { index: 0, id: "call_1", type: "function", function: { name: "clock", arguments: "{}" } };
const result: ChatMessage = { role: "tool", tool_call_id: "call_1", content: "Noon." };

/** An answer with these deltas, and the message that the next request sends back for the answer. */
async function roundTrip(...deltas: object[]): Promise<Record<string, unknown>> {
  const answer: Answer = events(...deltas.map((delta) => event({ choices: [{ index: 0, delta }] })), FINISH, DONE);
  const { url, received } = await startFaultServer(answer);
  const gateway = connect(url);
  const { chunks } = await readAnswer(gateway, request, open);
  const own = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const message = settleCalls(own.reduce(applyDelta, { role: "assistant", content: "" }));
  await readAnswer(gateway, { ...request, messages: [...request.messages, message, result] }, open);
  const sent = received[1]?.json as { messages: Array<Record<string, unknown>> } | undefined;
  return sent?.messages[1] ?? {};
}

describe("extra fields of a gateway on an answer with calls", () => {
  test("reasoning_content is joined from its pieces and sent back on the message", async () => {
    const sent = await roundTrip(
      { reasoning_content: "I need " },
      { reasoning_content: "the time." },
      { tool_calls: [call] },
    );
    expect(sent).toMatchObject({ role: "assistant", reasoning_content: "I need the time." });
  });

  test("reasoning_details are sent back as ordered lists, joined by index", async () => {
    const piece = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };
    const sealed = { type: "reasoning.encrypted", data: "AbC=", id: "rs_1", format: "openai-responses-v1", index: 1 };
    const { reasoning_details } = await roundTrip(
      { reasoning_details: [{ ...piece, text: "I need " }] },
      { reasoning_details: [{ ...piece, text: "the time." }] },
      { reasoning_details: [{ ...piece, text: "", signature: "c2ln" }] },
      { reasoning_details: [sealed] },
      { tool_calls: [call] },
    );
    expect(reasoning_details).toEqual([{ ...piece, text: "I need the time.", signature: "c2ln" }, sealed]);
  });

  test("thinking_blocks are sent back as blocks that end with their signatures", async () => {
    const { thinking_blocks } = await roundTrip(
      { thinking_blocks: [{ type: "thinking", thinking: "I need ", signature: null }] },
      { thinking_blocks: [{ type: "thinking", thinking: "the time.", signature: null }] },
      { thinking_blocks: [{ type: "thinking", thinking: "", signature: "c2ln" }] },
      { thinking_blocks: [{ type: "thinking", thinking: "Now.", signature: "bmV4dA==" }] },
      { tool_calls: [call] },
    );
    expect(thinking_blocks).toEqual([
      { type: "thinking", thinking: "I need the time.", signature: "c2ln" },
      { type: "thinking", thinking: "Now.", signature: "bmV4dA==" },
    ]);
  });

  test("fields with unknown names are sent back", async () => {
    const sent = await roundTrip({ vendor_state: { seal: "x", steps: [1, 2] } }, { tool_calls: [call] });
    expect(sent).toMatchObject({ vendor_state: { seal: "x", steps: [1, 2] } });
  });

  test("extra fields go to no other model, and the history does not store them", () => {
    const attached = { from: "first other", fields: { reasoning_content: "hmm" } };
    const { index: _index, ...plain } = { ...call, type: "function" as const };
    const message = { role: "assistant" as const, content: "", tool_calls: [{ ...plain, attached }], attached };
    expect(withoutAttached(message)).toEqual({ role: "assistant", content: "", tool_calls: [plain] });
  });
});

test("a model never receives another model's extra fields", async () => {
  const { url, received } = await startFaultServer(events(event({ choices: [] }), FINISH, DONE));
  const attached = { from: "first other", fields: { reasoning_content: "hmm" } };
  const { index: _index, ...plain } = { ...call, type: "function" as const };
  const message = { role: "assistant" as const, content: "", tool_calls: [plain], attached };
  await readAnswer(connect(url), { ...request, messages: [...request.messages, message, result] }, open);
  expect(JSON.stringify(received[0]?.json)).not.toContain("reasoning_content");
});

test("an answer without calls keeps no extra fields", () => {
  const delta = { content: "Hi.", attached: { from: "first m", fields: { reasoning_content: "hmm" } } };
  expect(settleCalls(applyDelta({ role: "assistant", content: "" }, delta))).toEqual({
    role: "assistant",
    content: "Hi.",
  });
});

describe("extra fields of a hostile gateway", () => {
  const read = (fields: Record<string, unknown>): Attached => {
    const message: Record<string, unknown> & { attached?: Attached } = { ...fields };
    setApart(message, new Set(), "first m");
    return message.attached ?? { from: "first m", fields: {} };
  };
  const join = (fragments: Array<Record<string, unknown>>) =>
    fragments.map(read).reduce<Attached | undefined>(joinAttached, undefined)?.fields ?? {};

  test("extra fields are dropped if they are nested too deeply", () => {
    const deep = JSON.parse(`${"[".repeat(30_000)}${"]".repeat(30_000)}`) as unknown;
    expect(join([{ deep, short: 1 }, { deep: [deep] }, { short: 2 }])).toEqual({ short: 2 });
  });

  test("extra fields are limited in number, so that every fragment takes the same time", () => {
    const numbers = Array.from({ length: 300 }, (_, index) => index);
    expect(Object.keys(join(numbers.map((number) => ({ [`key${number}`]: 1 }))))).toHaveLength(256);
    expect(join(numbers.map((number) => ({ list: [{ id: `id${number}` }] })))).toEqual({
      list: expect.objectContaining({ length: 256 }),
    });
    const record = join(numbers.map((number) => ({ record: { [`key${number}`]: 1 } })))["record"];
    expect(Object.keys(record as object)).toHaveLength(256);
    expect(join([{ list: numbers }, { record: { list: numbers } }])).toEqual({});
  });

  test("extra fields that are too long are dropped at the end of the answer", () => {
    const attached = { from: "first m", fields: { signature: "x".repeat(600_000) } };
    const own = { id: "1", type: "function" as const, function: { name: "clock", arguments: "{}" } };
    const calls = [{ ...own, attached }];
    expect(settleCalls({ role: "assistant", content: "", tool_calls: calls })).toHaveProperty("tool_calls", calls);
    expect(settleCalls({ role: "assistant", content: "", tool_calls: calls, attached })).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [own],
    });
  });

  test("extra fields are not confused with fields that Palaver itself adds", async () => {
    const sent = await roundTrip(
      { content: "a", attached: "", pictures: 5 },
      { odd: 1, pictures: null },
      { attached: null, pictures: ["http://127.0.0.1/"] },
      { tool_calls: [{ ...call, odd: 1 }] },
      { tool_calls: [{ index: 0, attached: null }] },
    );
    expect(sent).toMatchObject({ content: "a", odd: 1, tool_calls: [{ id: "call_1", odd: 1 }] });
  });
});
