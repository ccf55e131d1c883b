import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Budget } from "../../src/pacing/budget.ts";
import { createPacer } from "../../src/pacing/pacer.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { startEngine } from "../support/engine.ts";
import { message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

/** A platform that takes a message once and once more when it is whole, and no edit between. */
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

test("an adapter called teams is paced by the limits that it brings, and by no other's", async () => {
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
  // Whatever paces replies elsewhere would have shown the middle before the end.
  const script = ["The beginning, ", sleep(500), "the middle, ", sleep(1_500), "the end."];
  const { accept, idle } = startEngine({ scripts: [script], adapterOf: () => teams, isPaced: true });
  const ask = (question: string) => accept(message(question, { reply: { platform: "teams", channelId: "general" } }));
  await ask("first");
  await idle();
  expect(texts()).toEqual(["The beginning, the middle, the end."]);
  expect(calls).toEqual(["post", "edit"]);
  // The pacer of a limit is made for its first reply and serves the others.
  await ask("second");
  await idle();
  expect(made).toEqual(["teams:general"]);
});
