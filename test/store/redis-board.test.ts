import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createBoard } from "../../src/store/redis-board.ts";
import { eventually } from "../support/eventually.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing } from "../support/redis.ts";
import { shareRedis } from "../support/shared-redis.ts";

const PLACE = "test:board";

describe.skipIf(isRedisMissing)("a board of several processes (needs redis-server)", () => {
  const shared = shareRedis();

  function open(by: string, now: () => number) {
    const { connection } = shared;
    const board = createBoard({ connection, schema: z.string(), place: PLACE, by, now, log: silent });
    onTestFinished(() => board.close());
    return board;
  }

  test("keeps the last word about each key until it has lost its meaning, however many keys there are", async () => {
    let nowMs = 1_000;
    const [one, other] = [open("one", () => nowMs), open("other", () => nowMs)];
    for (const key of ["a", "b", "c"]) one.tell(key, "wait", 500);
    one.tell("d", "wait", 5_000);
    const kept = () => shared.connection.client.hKeys(PLACE);
    await eventually(kept).toEqual(["a", "b", "c", "d"]);
    nowMs = 2_000;
    one.tell("e", "wait", 500);
    await eventually(kept).toEqual(["d", "e"]);
    const heard: [string, string, number][] = [];
    await other.listen((...told) => heard.push(told));
    expect(heard).toEqual([
      ["d", "wait", 4_000],
      ["e", "wait", 500],
    ]);
    one.tell("d", "over", 0);
    await eventually(kept).toEqual(["e"]);
  });
});
