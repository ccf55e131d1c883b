import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Budget } from "../../src/pacing/budget.ts";
import { createPacer } from "../../src/pacing/pacer.ts";
import type { Adapter } from "../../src/port/adapter.ts";

/** A platform that accepts a message at its start and again when it is complete, but no edits in between. */
const NO_EDITS: Budget = {
  firstGapMs: 0,
  minGapMs: 0,
  spare: 0,
  reserve: () => 0,
  gap: () => 0,
  isRich: () => true,
  credit: ({ kind }) => (kind === "edit" ? 0 : 1),
  creditAt: ({ kind }, _needs, from) => (kind === "edit" ? Infinity : from),
  sent: () => {},
  done: () => {},
  keepUntil: () => 0,
};

test("an adapter called teams has its own limits, and no others", async () => {
  const { adapter, sink, calls, texts } = fakePlatform();
  const made: string[] = [];
  const toBudget = (key: string) => ({
    key,
    createPacer: () => {
      made.push(key);
      return createPacer(NO_EDITS);
    },
  });
  const teams: Adapter = {
    ...adapter,
    platform: "teams",
    sink: () => ({ ...sink, budget: toBudget("teams:general") }),
  };
  // Any other pacer would have shown the middle before the end.
  const script = ["The beginning, ", sleep(500), "the middle, ", sleep(1_500), "the end."];
  const { accept, idle } = startEngine({ scripts: [script], adapterOf: () => teams, isPaced: true });
  const ask = (question: string) => accept(message(question, { reply: { platform: "teams", channelId: "general" } }));
  await ask("first");
  await idle();
  expect(texts()).toEqual(["The beginning, the middle, the end."]);
  expect(calls).toEqual(["post", "edit"]);
  // The first reply creates the pacer for the limit, and the others use the same pacer.
  await ask("second");
  await idle();
  expect(made).toEqual(["teams:general"]);
});
