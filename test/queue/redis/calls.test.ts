import { describe, expect, onTestFinished, test } from "vitest";
import type { KnownCall } from "../../../src/port/pace.ts";
import { createSharedCalls } from "../../../src/queue/redis/calls.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { isRedisMissing } from "../../support/redis.ts";
import { shareRedis } from "../../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("the calls of processes that share a limit (needs redis-server)", () => {
  const shared = shareRedis();

  function startOne() {
    const heard: Array<KnownCall & { key: string }> = [];
    const calls = createSharedCalls({
      connection: shared.connection,
      now: Date.now,
      onHeard: (key, made) => void heard.push(...made.map((call) => ({ key, ...call }))),
      log: silent,
    });
    onTestFinished(calls.close);
    return { ...calls, heard, rooms: () => heard.map(({ room }) => room) };
  }

  const call = (room: string): KnownCall => ({ kind: "edit", room, isFallback: true, sentAt: performance.now() });
  const stored = () => shared.connection.client.lLen("palaver:queue:calls:T");

  test("are known to the next process that writes there, with their kind and time", async () => {
    const [one, other] = [startOne(), startOne()];
    const made = { ...call("C"), refusedForMs: 3_000 };
    one.note("T", made);
    one.note("another", call("D"));
    await eventually(stored).toBe(1);
    await other.open("T");
    expect(other.heard).toEqual([{ ...made, key: "T", sentAt: expect.closeTo(made.sentAt, -1) as number }]);
  });

  test("are heard while both write, each once, and none of one's own", async () => {
    const [one, other] = [startOne(), startOne()];
    one.note("T", call("before"));
    await Promise.all([one.open("T"), other.open("T"), other.open("T")]);
    one.note("T", call("of one"));
    other.note("T", call("of the other"));
    await eventually(other.rooms).toEqual(["before", "of one"]);
    await eventually(one.rooms).toEqual(["of the other"]);
  });

  test("that were made meanwhile are caught up with, and no others again", async () => {
    const [one, other] = [startOne(), startOne()];
    const leave = await other.open("T");
    one.note("T", call("first"));
    await eventually(other.rooms).toEqual(["first"]);
    leave();
    one.note("T", call("second"));
    await eventually(stored).toBe(2);
    await other.open("T");
    expect(other.rooms()).toEqual(["first", "second"]);
  });
});
