import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createLedger } from "../../src/tools/ledger.ts";
import { runRound, toStorable } from "../../src/tools/round.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { openEntries } from "../support/entries.ts";
import { LEDGER_TURN } from "../support/tool-calls.ts";

const signal = new AbortController().signal;

/** A store that fails while `isAway` returns true. */
function brittleStore() {
  const keyv = openEntries();
  const store = { isAway: false };
  const { put } = keyv;
  keyv.put = async (entry) => {
    if (store.isAway) throw new Error("The store is away.");
    return put(entry);
  };
  return { keyv, store };
}

function marking(name: string, acts: boolean, onRun: () => void): Tool {
  const options = { name, description: "", schema: z.object({}), timeoutMs: 1_000, describeCall: () => name };
  return { ...defineTool({ ...options, run: async () => (onRun(), "done") }), acts };
}

const REST = { context: { conversationId: "c" }, isAllowed: async () => false, onStep: () => {} };

const toCall = (name: string) => ({ id: name, type: "function" as const, function: { name, arguments: "{}" } });

describe("a round of tool calls that the store cannot record", () => {
  test("the bot runs read-only tools, but none that act, in a round that it cannot record", async () => {
    const { keyv, store } = brittleStore();
    store.isAway = true;
    const ran: string[] = [];
    const tools = ["reads", "acts"].map((name) => marking(name, name === "acts", () => void ran.push(name)));
    const ledger = await createLedger({ keyv, allowed: keyv, ttlMs: 60_000 }).open(LEDGER_TURN);
    const answer = { role: "assistant" as const, content: "", tool_calls: [toCall("reads"), toCall("acts")] };
    const { results } = await runRound(answer, 1, { ...REST, tools, ledger }, signal);
    expect(ran).toEqual(["reads"]);
    expect(results.map(({ content }) => content)).toEqual(["done", expect.stringMatching(/^Not run: .*recorded/)]);
  });

  test("no acting tool starts if the store fails after the bot planned the round", async () => {
    const { keyv, store } = brittleStore();
    const ran: string[] = [];
    const tools = [marking("acts", true, () => void ran.push("acts"))];
    const ledger = await createLedger({ keyv, allowed: keyv, ttlMs: 60_000 }).open(LEDGER_TURN);
    const plan = ledger.plan;
    ledger.plan = async (round) => {
      await plan(round);
      store.isAway = true;
    };
    const answer = { role: "assistant" as const, content: "", tool_calls: [toCall("acts")] };
    const { results } = await runRound(answer, 1, { ...REST, tools, ledger }, signal);
    expect(ran).toEqual([]);
    expect(results[0]?.content).toMatch(/^Not run/);
  });
});

describe("a fleeting tool, whose result no one stores", () => {
  test("the store never gets the result of a fleeting tool, and the next process makes the call again", async () => {
    const keyv = openEntries();
    const ledger = createLedger({ keyv, allowed: keyv, ttlMs: 60_000 });
    let count = 0;
    const options = {
      name: "find",
      description: "",
      schema: z.object({}),
      timeoutMs: 1_000,
      isFleeting: true as const,
    };
    const run: Tool["run"] = async (_args, { onFound }) => {
      onFound?.({ hits: [{ placeId: "here", link: "https://chat.example/1" }], withheld: 2 });
      return `secret ${++count}`;
    };
    const find = { ...defineTool({ ...options, run: async () => "", describeCall: () => "finding" }), run };
    const answer = { role: "assistant" as const, content: "", tool_calls: [toCall("find")] };
    for (const number of [1, 2]) {
      const turn = await ledger.open(LEDGER_TURN);
      const { results } = await runRound(answer, 1, { ...REST, tools: [find], ledger: turn }, signal);
      expect(results.map(({ content }) => content)).toEqual([`secret ${number}`]);
      expect(toStorable([answer, ...results], [find]).map(({ content }) => content)).toEqual([
        "",
        "(This result was not stored. Call it again if you need it.)",
      ]);
      const [stored] = (await ledger.open(LEDGER_TURN)).rounds;
      expect(JSON.stringify(stored)).not.toContain("secret");
      expect(stored?.calls[0]?.found).toEqual({
        hits: [{ placeId: "here", link: "https://chat.example/1" }],
        withheld: 2,
      });
    }
  });

  test("a result of another tool is stored, even if the gateway repeats the ids of calls in each round", () => {
    const run = async () => "";
    const options = { description: "", schema: z.object({}), timeoutMs: 1_000, run, describeCall: () => "" };
    const tools = [
      defineTool({ ...options, name: "find", isFleeting: true }),
      defineTool({ ...options, name: "read" }),
    ];
    const messages = ["find", "read", "find"].flatMap((name) => [
      { role: "assistant" as const, content: "", tool_calls: [{ ...toCall(name), id: "call_0" }] },
      { role: "tool" as const, tool_call_id: "call_0", content: name },
    ]);
    const results = toStorable(messages, tools).filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content)).toEqual([
      expect.stringMatching(/not stored/),
      "read",
      expect.stringMatching(/not stored/),
    ]);
  });
});
