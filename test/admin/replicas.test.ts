import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { comeIn } from "../../lab/support/administrator.ts";
import { message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import type { Story, Trends } from "../../src/admin/page/wire.ts";
import { keepBotsOnRedis } from "../support/bots-on-redis.ts";
import { startReplica } from "../support/dashboard.ts";
import { eventually } from "../support/eventually.ts";

async function startTwo(last: Promise<unknown>) {
  const platform = fakePlatform();
  const both = { platform, storeDatabase: new DatabaseSync(":memory:"), scripts: [["Well,", last, " done."]] };
  const one = await startReplica({ ...both, name: "one" });
  const two = await startReplica({ ...both, name: "two" });
  return { one, two };
}

describe.skipIf(isRedisMissing)("the dashboard of several processes (needs redis-server)", () => {
  keepBotsOnRedis();

  test("each process shows the running answers of all processes, and stops any of them", async () => {
    const { one, two } = await startTwo(new Promise(() => {}));
    const [atOne, session] = [await comeIn(one.url), await comeIn(two.url)];
    // The other process accepts the session too.
    const atTwo = await comeIn(two.url, atOne);
    expect(session.cookie).not.toBe(atOne.cookie);
    await Promise.all(["a", "b", "c", "d"].map((id) => one.accept(message("hi", { conversationId: `test:${id}` }))));

    const running = (now: Awaited<ReturnType<typeof atOne.until>>) =>
      now.processes.flatMap((process) => process.running);
    const [seen, other] = await Promise.all(
      [atOne, atTwo].map((admin) => admin.until((now) => running(now).filter(({ shown }) => shown > 0).length === 4)),
    );
    expect(seen?.processes.map(({ name }) => name)).toEqual(["one", "two"]);
    const idsOf = (now: typeof seen) =>
      running(now ?? { at: 0, processes: [], problem: null })
        .map(({ turnId }) => turnId)
        .toSorted();
    expect(idsOf(seen)).toEqual(idsOf(other));

    for (const { turnId, process } of running(seen ?? { at: 0, processes: [], problem: null })) {
      const admin = process === "one" ? atTwo : atOne;
      await admin.read(`turns/${turnId}/stop`, { method: "POST" });
    }
    await atOne.until((now) => running(now).length === 0);
    await eventually(async () => (await atTwo.read<Story[]>("turns")).map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: 4 }, () => "stopped"),
    );
    expect([...one.acts, ...two.acts].map(({ act }) => act)).toEqual(
      Array.from({ length: 4 }, () => "stopped an answer"),
    );
  });

  test("a process can stop an answer on a platform that only another process runs", async () => {
    const platform = fakePlatform({ isOwn: true });
    const storeDatabase = new DatabaseSync(":memory:");
    const scripts = [["Well,", new Promise<never>(() => {})]];
    const one = await startReplica({ name: "one", platform, storeDatabase, scripts });
    const two = await startReplica({
      name: "two",
      storeDatabase,
      adapterOf: (name) => {
        throw new Error(`There is no ${name} here.`);
      },
    });
    const atTwo = await comeIn(two.url);
    await one.accept(message("hi"));
    const { processes } = await atTwo.until(({ processes }) => processes.some(({ running }) => running.length > 0));
    const [story] = processes.flatMap(({ running }) => running);
    await atTwo.read(`turns/${story?.turnId}/stop`, { method: "POST" });
    await eventually(() => platform.texts().join()).toContain("`an administrator` stopped this answer.");
    expect(two.acts.map(({ turnId }) => turnId)).toEqual([story?.turnId]);
  });

  test("the trends add up the numbers of all processes", async () => {
    const { one, two } = await startTwo(Promise.resolve());
    for (let n = 0; n < 6; n++) await one.accept(message("hi", { conversationId: `test:${n}` }));
    await one.idle();
    await two.idle();
    const admin = await comeIn(two.url);
    await eventually(async () => {
      const { counts, times } = await admin.read<Trends>("trends/hour");
      return [counts.turns["complete"]?.reduce((sum, count) => sum + count), times.firstToken["all"]?.count];
    }).toEqual([6, 6]);
  });

  test("the dashboard does not show a process that has ended", async () => {
    const { one, two } = await startTwo(Promise.resolve());
    const admin = await comeIn(one.url);
    await admin.until(({ processes }) => processes.length === 2);
    await two.insight.processes.close();
    await admin.until(({ processes }) => processes.length === 1);
  });
});
