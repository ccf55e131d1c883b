import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { asResumed, canBeTakenOver, checkRight, FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { callPlatform } from "../../src/reply/platform-call.ts";
import { createStores, type StoresOptions } from "../../src/store/keyv.ts";

const standing = { key: "lane", value: "1", check: async () => {} };
const fallen = { key: "turn", value: "2", check: () => Promise.reject(new FencedError("taken over")) };

test("a right to write ends when any of its fences is lost", async () => {
  const right = withFence(NO_RIGHT, standing);
  await checkRight(right);
  expect([canBeTakenOver(NO_RIGHT), canBeTakenOver(right)]).toEqual([false, true]);
  await expect(checkRight(withFence(right, fallen))).rejects.toThrow(FencedError);
  expect(asResumed(right)).toEqual({ fences: [standing], isResumed: true });
});

test("an adapter makes no platform call under a lost right to write, even if other code runs the call later", async () => {
  const calls: string[] = [];
  const run = Promise.withResolvers<void>();
  // A shared timer does the same, because it knows nothing about the work.
  const later = run.promise.then(() => callPlatform(withFence(NO_RIGHT, fallen), async () => calls.push("called")));
  run.resolve();
  await expect(later).rejects.toThrow(FencedError);
  expect(calls).toEqual([]);
});

test("a store, a sink or a call without a right to write does not compile", () => {
  const options: StoresOptions = { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent };
  const { adapter } = fakePlatform();
  const address = { platform: "test", channelId: "a" };
  // The compiler reports a directive that is not needed.
  const attempts: ReadonlyArray<() => unknown> = [
    // @ts-expect-error -- a store is opened under a right
    () => createStores(options),
    // @ts-expect-error -- a sink is opened under a right
    () => (adapter satisfies Adapter).sink(address),
    // @ts-expect-error -- a call is made under a right
    () => callPlatform(async () => {}),
  ];
  expect(attempts).toHaveLength(3);
});
