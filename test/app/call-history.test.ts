import { expect, test } from "vitest";
import { createSlackPacer } from "../../adapters/slack/write/pace.ts";
import { message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { createCallHistory } from "../../src/app/call-history.ts";
import { createScheduler } from "../../src/pacing/scheduler.ts";
import type { KnownCall } from "../../src/port/pace.ts";
import { GARBAGE } from "../support/garbage.ts";

/** Starts a process whose scheduler has made these calls. The processes share the clock `now`. */
function startOne(calls: Record<string, readonly KnownCall[]> = {}, now: () => number = Date.now) {
  const recalled = new Map<string, readonly KnownCall[]>();
  const scheduler = {
    callsOf: (key: string) => calls[key] ?? [],
    recall: (key: string, known: readonly KnownCall[]) => void recalled.set(key, known),
  };
  return { ...createCallHistory({ scheduler, budgetOf: ({ reply }) => reply.channelId, now, log: silent }), recalled };
}

const call: KnownCall = { kind: "edit", room: "C", isFallback: true, sentAt: performance.now(), refusedForMs: 3_000 };

test("the next process learns the kind and time of calls, but no calls of rate limits outside the adapter", () => {
  const [one, other] = [startOne({ T: [call], U: [call] }), startOne()];
  other.recall(one.describe(new Set(["T", "unused"])) ?? "");
  expect([...other.recalled]).toEqual([["T", [{ ...call, sentAt: expect.closeTo(call.sentAt, -1) as number }]]]);
});

test("a process passes on the calls that it learnt from the previous process, each once", () => {
  const scheduler = createScheduler({ now: () => performance.now() });
  const deps = { scheduler, budgetOf: () => "T", log: silent, now: Date.now };
  const second = createCallHistory(deps);
  const told = startOne({ T: [call] }).describe(new Set(["T"])) ?? "";
  second.recall(told);
  expect(JSON.parse(second.describe(new Set(["T"])) ?? "")).toMatchObject({ T: [{ refusedForMs: 3_000 }] });
  const written = { answer: { ok: true }, behind: false } as const;
  scheduler.join({ key: "T", createPacer: createSlackPacer }, { write: async () => written });
  second.recall(told);
  expect(JSON.parse(second.describe(new Set(["T"])) ?? "")).toMatchObject({ T: [{ refusedForMs: 3_000 }] });
});

test("a process does not pass on calls that no rate limit counts any more", () => {
  const one = startOne({ T: [{ ...call, sentAt: performance.now() - 91_000 }] });
  expect(one.describe(new Set(["T"]))).toBeUndefined();
});

test("a process ignores an unreadable call history", () => {
  const { recall, recalled } = startOne();
  for (const text of GARBAGE) recall(text);
  expect(recalled.size).toBe(0);
});

test("an event belongs to the rate limit that its replies count against", () => {
  const event = message("hello");
  expect(startOne().budgetOf(event)).toBe(event.reply.channelId);
});
