import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createLedger } from "../../src/tools/ledger.ts";
import { runRound } from "../../src/tools/round.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";

const signal = new AbortController().signal;

/** A store that takes nothing once `isAway` says so. */
function brittleStore() {
  const keyv = new Keyv();
  const store = { isAway: false };
  const set = keyv.set.bind(keyv);
  keyv.set = async (key: string, value: unknown, ttl?: number) => {
    if (store.isAway) throw new Error("The store is away.");
    return set(key, value, ttl);
  };
  return { keyv, store };
}

function marking(name: string, acts: boolean, onRun: () => void): Tool {
  const options = { name, description: "", schema: z.object({}), timeoutMs: 1_000, describeCall: () => name };
  return { ...defineTool({ ...options, run: async () => (onRun(), "done") }), acts };
}

const toCall = (name: string) => ({ id: name, type: "function" as const, function: { name, arguments: "{}" } });

describe("a round where nothing can be written down", () => {
  test("runs tools that only read, and none that act", async () => {
    const { keyv, store } = brittleStore();
    store.isAway = true;
    const ran: string[] = [];
    const tools = ["reads", "acts"].map((name) => marking(name, name === "acts", () => void ran.push(name)));
    const ledger = await createLedger({ keyv, allowed: keyv, ttlMs: 60_000 }).open("turn");
    const deps = { tools, context: { conversationId: "c" }, ledger, isAllowed: async () => false, onStep: () => {} };
    const answer = { role: "assistant" as const, content: "", tool_calls: [toCall("reads"), toCall("acts")] };
    const { results } = await runRound(answer, 1, deps, signal);
    expect(ran).toEqual(["reads"]);
    expect(results.map(({ content }) => content)).toEqual(["done", expect.stringMatching(/^Not run: .*written down/)]);
  });

  test("begins no acting tool when the store goes away after the round was planned", async () => {
    const { keyv, store } = brittleStore();
    const ran: string[] = [];
    const tools = [marking("acts", true, () => void ran.push("acts"))];
    const ledger = await createLedger({ keyv, allowed: keyv, ttlMs: 60_000 }).open("turn");
    const plan = ledger.plan;
    ledger.plan = async (round) => {
      await plan(round);
      store.isAway = true;
    };
    const deps = { tools, context: { conversationId: "c" }, ledger, isAllowed: async () => false, onStep: () => {} };
    const answer = { role: "assistant" as const, content: "", tool_calls: [toCall("acts")] };
    const { results } = await runRound(answer, 1, deps, signal);
    expect(ran).toEqual([]);
    expect(results[0]?.content).toMatch(/^Not run/);
  });
});
