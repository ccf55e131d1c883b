import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ada, ben } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { createQuota, type Quota, QuotaError } from "../../src/quota/quota.ts";
import type { Need } from "../../src/quota/reckon.ts";
import { type Counters, createSqliteCounters } from "../../src/store/counters.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createUsage } from "../../src/usage/usage.ts";

const general = { platform: "test", channelId: "general", workspaceId: "acme" };
const NOON = Date.parse("2026-11-20T12:00:00Z");

function start(policy: Policy) {
  const clock = { now: NOON };
  const database = new DatabaseSync(":memory:");
  const counters = createSqliteCounters(database, () => clock.now);
  const shared = { counters, log: silent, now: () => clock.now };
  const usage = createUsage(shared);
  const pseudonym = (_: string, userId: string) => `u_${userId.length}${userId[0]}`;
  const options = { ...shared, right: NO_RIGHT, usage, pseudonym };
  const quota = createQuota({ ...options, policy: () => policy });
  return { quota, usage, counters, clock, database, policy, options };
}

const { signal } = new AbortController();
let count = 0;
function need(more: Partial<Need> = {}, author = ada): Need {
  count += 1;
  return { id: `turn-${count}`, by: { author, reply: general, model: "m" }, promptTokens: 80, ...more };
}

const spent = (promptTokens: number, completionTokens: number) => ({
  promptTokens,
  completionTokens,
  isEstimated: false,
});

async function refusalOf(quota: Quota, given = need()): Promise<string> {
  const error: unknown = await quota.reserve(given, signal).catch((reason: unknown) => reason);
  return error instanceof QuotaError ? error.message : "no refusal";
}

describe("a quota", () => {
  test("a quota without limits allows every answer and still counts", async () => {
    const { quota, usage } = start({});
    const { maxTokens, settle } = await quota.reserve(need(), signal);
    expect(maxTokens).toBeUndefined();
    await settle(spent(80, 20));
    await settle(spent(80, 20));
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 1, promptTokens: 80, unpriced: 1 });
  });

  test("a quota reserves the prompt with a margin, and the longest answer", async () => {
    const { quota } = start({ quotas: { person: { day: { tokens: 10_000 } }, answerTokens: 1_000 } });
    const { maxTokens, settle, tight } = await quota.reserve(need(), signal);
    expect([maxTokens, tight]).toEqual([1_000, undefined]);
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 1_100, most: 10_000, scope: "person" }]);
    await settle(spent(90, 40));
    expect(await quota.read(need().by)).toMatchObject([{ used: 130, held: 0 }]);
    expect(await quota.read(need({}, ben).by)).toMatchObject([{ used: 0 }]);
  });

  test("a quota allows a shorter answer if little is left, and then refuses with the limit, the remaining amount and the reset time", async () => {
    const { quota } = start({ quotas: { channel: { day: { tokens: 500 } }, answerTokens: 300 } });
    const first = await quota.reserve(need(), signal);
    expect(first.maxTokens).toBe(300);
    // 500 - (100 + 300) are left, which is too little for a prompt and an answer.
    expect(await refusalOf(quota)).toBe(
      "This channel's limit of 500 tokens per day is nearly reached: 100 tokens left, but your request could need up to 164 tokens, so I didn't answer. It resets on 2026-11-21 at 00:00 UTC.",
    );
    await first.settle(spent(80, 120));
    const second = await quota.reserve(need(), signal);
    expect(second).toMatchObject({ maxTokens: 200, tight: "This channel's limit of 500 tokens per day" });
  });

  test.each([
    [
      { person: { hour: { requests: 1 } } },
      "Your limit of 1 request per hour is reached, so I didn't answer. It resets at 13:00 UTC.",
    ],
    [
      { all: { minute: { requests: 1 } } },
      "The limit for everyone together of 1 request per minute is reached, so I didn't answer. It resets at 12:01 UTC.",
    ],
    [
      { workspace: { month: { requests: 1 } } },
      "This workspace's limit of 1 request per month is reached, so I didn't answer. It resets on 2026-12-01 at 00:00 UTC.",
    ],
  ])("a refusal says when the window ends: %j", async (quotas, words) => {
    const { quota, clock } = start({ quotas });
    await (await quota.reserve(need(), signal)).settle(spent(1, 1));
    expect(await refusalOf(quota)).toBe(words);
    clock.now = Date.parse("2026-12-01T00:00:00Z");
    expect(await refusalOf(quota)).toBe("no refusal");
  });

  test("a quota counts nothing for a request that was never sent", async () => {
    const { quota, usage } = start({ quotas: { person: { day: { requests: 1 } } } });
    await (await quota.reserve(need(), signal)).settle("unsent");
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 0 }]);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 0 });
  });

  test("a quota counts a request that the gateway refused without tokens or images", async () => {
    const limits = { requests: 3, tokens: 100_000, pictures: 1 };
    const { quota, usage } = start({ quotas: { person: { minute: limits }, all: { day: limits } } });
    for (const pictures of [undefined, undefined, 1]) {
      const refused = await quota.reserve(need(pictures === undefined ? {} : { pictures }), signal);
      await refused.settle("refused");
      await refused.settle("refused");
    }
    const standings = await quota.read({ author: ada, reply: general });
    expect(standings.map(({ scope, measure, used, held }) => [scope, measure, used, held])).toEqual(
      ["all", "person"].flatMap((scope) => [
        [scope, "tokens", 0, 0],
        [scope, "requests", 3, 0],
        [scope, "pictures", 0, 0],
      ]),
    );
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 3, promptTokens: 0, pictures: 0 });
    expect(await refusalOf(quota)).toContain("The limit for everyone together of 3 requests per day is reached");
  });

  test("a quota bounds an answer by the money left, at the model's price", async () => {
    const prices = { currency: "EUR", models: { m: { input: 1_000, cachedInput: 100, output: 2_000 } } };
    const { quota, usage } = start({ prices, quotas: { all: { month: { money: 0.5 } }, answerTokens: 1_000 } });
    const { maxTokens, tight, settle } = await quota.reserve(need(), signal);
    // 0.50, minus 0.10 for the prompt.
    expect([maxTokens, tight]).toEqual([200, "The limit for everyone together of 0.50 EUR per month"]);
    await settle({ ...spent(80, 100), cachedTokens: 30 });
    expect(await usage.readMonth("everyone")).toMatchObject({ costs: { EUR: 253_000_000 }, unpriced: 0 });
    expect(await quota.read(need().by)).toMatchObject([{ used: 253_000_000 }]);
    const next = await quota.reserve(need(), signal);
    await next.settle({ ...spent(80, 1), cost: 0.25 });
    expect(await refusalOf(quota)).toContain("limit for everyone together of 0.50 EUR per month is reached");
  });

  test("a quota counts images, and counts the tokens of images against no token limit", async () => {
    const { quota, usage } = start({
      prices: { currency: "USD", models: { "*": { picture: 0.04 } } },
      quotas: { person: { day: { pictures: 1, tokens: 10 } } },
    });
    const { settle } = await quota.reserve(need({ pictures: 1 }), signal);
    expect(await refusalOf(quota, need({ pictures: 1 }))).toContain(
      "Your limit of 1 image per day is reached, so I created no image.",
    );
    await settle(spent(10, 1_000));
    expect(await usage.readMonth("everyone")).toMatchObject({ pictures: 1, costs: { USD: 40_000_000 } });
    expect((await quota.read(need().by)).find(({ measure }) => measure === "tokens")).toMatchObject({ used: 0 });
  });

  test("a quota refuses nothing for a used-up limit that does not apply to the request", async () => {
    const { quota } = start({ quotas: { person: { day: { pictures: 0, requests: 5 } } } });
    expect(await refusalOf(quota)).toBe("no refusal");
    expect(await refusalOf(quota, need({ pictures: 1 }))).not.toContain("anew");
  });

  test("an admin lifts a limit for one day and one person, while usage still counts", async () => {
    const { quota, clock } = start({ quotas: { person: { month: { requests: 1 } } } });
    for (const author of [ada, ben]) await (await quota.reserve(need({}, author), signal)).settle(spent(1, 1));
    expect(await quota.lift("channel", need().by)).toBe(false);
    expect(await quota.lift("person", need().by)).toBe(true);
    await (await quota.reserve(need(), signal)).settle(spent(1, 1));
    expect(await quota.read(need().by)).toMatchObject([{ used: 2, isLifted: true }]);
    expect(await refusalOf(quota, need({}, ben))).toContain("Your limit of 1 request per month");
    clock.now += 86_400_000;
    expect(await refusalOf(quota)).toContain("Your limit of 1 request per month");
  });

  test("after a crash, one request too many counts against the limits until their window ends", async () => {
    const { quota, usage, clock } = start({ quotas: { person: { day: { tokens: 1_000 } }, answerTokens: 300 } });
    await quota.reserve(need(), signal);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 1, promptTokens: 80, estimatedTokens: 80 });
    clock.now = Date.parse("2026-11-20T23:59:59Z");
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 400, most: 1_000 }]);
    clock.now += 1_000;
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 0, most: 1_000 }]);
  });

  test("a quota counts each request of a resumed turn once, even if the first process was only slow", async () => {
    const { quota, usage } = start({ quotas: { person: { day: { tokens: 1_000 } }, answerTokens: 300 } });
    const turn = need();
    const slow = await quota.reserve(turn, signal);
    const { settle } = await quota.reserve(turn, signal);
    await settle(spent(80, 20));
    expect(await quota.read(turn.by)).toMatchObject([{ used: 100, held: 400 }]);
    await slow.settle(spent(80, 50));
    expect(await quota.read(turn.by)).toMatchObject([{ used: 230, held: 0 }]);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 2, completionTokens: 70, estimatedTokens: 0 });
  });

  test("a quota counts a request in the window in which it started, even if it ends later, and removes its estimate there", async () => {
    const { quota, usage, clock } = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    clock.now = Date.parse("2026-11-20T23:59:59Z");
    const { settle } = await quota.reserve(need({ maxTokens: 300 }), signal);
    clock.now += 2_000;
    await settle({ ...spent(80, 20), model: "other" });
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 0 }]);
    const rows = await usage.readTable("everyone");
    expect(rows.map(({ day, model, requests, promptTokens }) => [day, model, requests, promptTokens])).toEqual([
      ["2026-11-21", "other", 1, 80],
    ]);
    clock.now -= 2_000;
    expect(await quota.read(need().by)).toMatchObject([{ used: 100, held: 0 }]);
  });

  test("a quota counts a reservation with a lost response once, whether the store made it or not", async () => {
    for (const isTaken of [true, false]) {
      const { policy, counters, ...given } = start({ quotas: { person: { day: { tokens: 1_000 } } } });
      let calls = 0;
      const reserve: Counters["reserve"] = async (reservation) => {
        calls += 1;
        if (calls === 1 && isTaken) await counters.reserve(reservation);
        if (calls === 1) throw new StoreError("The answer was lost.");
        return counters.reserve(reservation);
      };
      const quota = createQuota({ ...given.options, policy: () => policy, counters: { ...counters, reserve } });
      const { settle } = await quota.reserve(need({ maxTokens: 300 }), signal);
      expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 400 }]);
      await settle(spent(80, 20));
      expect(await quota.read(need().by)).toMatchObject([{ used: 100, held: 0 }]);
      expect(calls).toBe(2);
    }
  });

  test("a request without limits reserves nothing, and counts once when it ends", async () => {
    const { counters, usage, ...given } = start({ quotas: { workspace: { day: { requests: 5 } } } });
    const reserve: Counters["reserve"] = () => Promise.reject(new Error("There is nothing to reserve."));
    const quota = createQuota({ ...given.options, policy: () => given.policy, counters: { ...counters, reserve } });
    // A direct message belongs to no workspace.
    const direct = need({ by: { author: ada, reply: { platform: "test", channelId: "direct" }, model: "m" } });
    const { settle } = await quota.reserve(direct, signal);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 0 });
    await settle(spent(70, 20));
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 1, promptTokens: 70, estimatedTokens: 0 });
  });

  test("the bot makes no request without limits for work that another process has taken over", async () => {
    const { options, policy } = start({});
    const check = () => Promise.reject(new FencedError("Another process has taken over this work."));
    const right = withFence(NO_RIGHT, { key: "owner", value: "1", check });
    const quota = createQuota({ ...options, right, policy: () => policy });
    await expect(quota.reserve(need(), signal)).rejects.toThrow(FencedError);
  });

  test("a refusal because the store is unavailable removes the reservation that the store may have made", async () => {
    const { policy, counters, ...given } = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    const reserve: Counters["reserve"] = async (reservation) => {
      await counters.reserve(reservation);
      throw new Error("The answer was lost.");
    };
    const quota = createQuota({ ...given.options, policy: () => policy, counters: { ...counters, reserve } });
    expect(await refusalOf(quota, need({ maxTokens: 300 }))).toContain("my storage is unavailable");
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 0 }]);
  });

  test("a quota reads the store once per check, and never if there are no limits", async () => {
    const limits = { tokens: 1_000, requests: 10 };
    for (const [policy, most] of [
      [{ quotas: { person: { day: limits, hour: limits }, channel: { day: limits }, all: { month: limits } } }, 1],
      [{}, 0],
    ] as const) {
      const { counters, ...given } = start(policy);
      let reads = 0;
      const read: Counters["read"] = (rows) => {
        reads += 1;
        return counters.read(rows);
      };
      const quota = createQuota({ ...given.options, policy: () => policy, counters: { ...counters, read } });
      expect(await quota.findRefusal(need().by, "chat")).toBeUndefined();
      expect(reads).toBe(most);
    }
  });

  test("a quota with limits refuses requests while the store is unavailable, and a quota without limits allows them", async () => {
    const limited = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    limited.database.close();
    expect(await refusalOf(limited.quota)).toContain("my storage is unavailable");
    const free = start({});
    free.database.close();
    expect(await refusalOf(free.quota)).toBe("no refusal");
  });

  test("ten concurrent requests never exceed a limit", async () => {
    const answers = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 10, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 100, max: 3_000 }), async (lengths, tokens) => {
        const { quota, usage } = start({ quotas: { person: { day: { tokens } }, answerTokens: 300 } });
        await Promise.all(
          lengths.map(async (length) => {
            const reservation = await quota.reserve(need(), signal).catch(() => undefined);
            if (reservation === undefined) return;
            await reservation.settle(spent(90, Math.min(length, reservation.maxTokens ?? Number.POSITIVE_INFINITY)));
          }),
        );
        const { promptTokens, completionTokens } = await usage.readMonth("everyone");
        expect(promptTokens + completionTokens).toBeLessThanOrEqual(tokens);
        expect(await quota.read(need().by)).toMatchObject([{ used: promptTokens + completionTokens, held: 0 }]);
      }),
      { numRuns: 50 },
    );
  });
});
