import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { createQuota, type Quota, QuotaError, RESERVED_MS } from "../../src/quota/quota.ts";
import type { Need } from "../../src/quota/reckon.ts";
import { createSqliteCounters } from "../../src/store/counters.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { ada, ben } from "../support/events.ts";
import { silent } from "../support/log.ts";

const general = { platform: "test", channelId: "general", workspaceId: "acme" };
const NOON = Date.parse("2026-11-20T12:00:00Z");

function start(policy: Policy) {
  const clock = { now: NOON };
  const database = new DatabaseSync(":memory:");
  const { open } = createStores({ redisUrl: undefined, database, log: silent });
  const counters = createSqliteCounters(database, () => clock.now);
  const shared = { counters, log: silent, now: () => clock.now };
  const usage = createUsage({ ...shared, open });
  const pseudonym = (_: string, userId: string) => `u_${userId.length}${userId[0]}`;
  const quota = createQuota({ ...shared, policy: () => policy, usage, pseudonym });
  return { quota, usage, counters, clock, database };
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
  test("bounds no answer where there is none, and counts all the same", async () => {
    const { quota, usage, counters } = start({});
    const { maxTokens, settle } = await quota.reserve(need(), signal);
    expect(maxTokens).toBeUndefined();
    await settle(spent(80, 20));
    await settle(spent(80, 20));
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 1, promptTokens: 80, unpriced: 1 });
    expect(await counters.countHolds()).toBe(0);
  });

  test("reserves the prompt, and a little more, with the longest answer", async () => {
    const { quota } = start({ quotas: { person: { day: { tokens: 10_000 } }, answerTokens: 1_000 } });
    const { maxTokens, settle, tight } = await quota.reserve(need(), signal);
    expect([maxTokens, tight]).toEqual([1_000, undefined]);
    expect(await quota.read(need().by)).toMatchObject([{ used: 0, held: 1_100, most: 10_000, scope: "person" }]);
    await settle(spent(90, 40));
    expect(await quota.read(need().by)).toMatchObject([{ used: 130, held: 0 }]);
    expect(await quota.read(need({}, ben).by)).toMatchObject([{ used: 0 }]);
  });

  test("leaves a shorter answer where little is left, and then refuses with what, how much and until when", async () => {
    const { quota } = start({ quotas: { channel: { day: { tokens: 500 } }, answerTokens: 300 } });
    const first = await quota.reserve(need(), signal);
    expect(first.maxTokens).toBe(300);
    // 500 - (100 + 300) are left: too little for a prompt and an answer.
    expect(await refusalOf(quota)).toBe(
      "Not answered: This channel's limit of 500 tokens per day is used up (100 tokens left, this may need 164 tokens). It begins anew on 2026-11-21 at 00:00 UTC.",
    );
    await first.settle(spent(80, 120));
    const second = await quota.reserve(need(), signal);
    expect(second).toMatchObject({ maxTokens: 200, tight: "This channel's limit of 500 tokens per day" });
  });

  test.each([
    [
      { person: { hour: { requests: 1 } } },
      "Your limit of 1 request per hour is used up (0 requests left, this may need 1 request). It begins anew at 13:00 UTC.",
    ],
    [
      { all: { minute: { requests: 1 } } },
      "My limit for everybody together of 1 request per minute is used up (0 requests left, this may need 1 request). It begins anew at 12:01 UTC.",
    ],
    [
      { workspace: { month: { requests: 1 } } },
      "This workspace's limit of 1 request per month is used up (0 requests left, this may need 1 request). It begins anew on 2026-12-01 at 00:00 UTC.",
    ],
  ])("says when the window ends: %j", async (quotas, words) => {
    const { quota, clock } = start({ quotas });
    await (await quota.reserve(need(), signal)).settle(spent(1, 1));
    expect(await refusalOf(quota)).toBe(`Not answered: ${words}`);
    clock.now = Date.parse("2026-12-01T00:00:00Z");
    expect(await refusalOf(quota)).toBe("no refusal");
  });

  test("counts nothing for a request that was never sent", async () => {
    const { quota, usage } = start({ quotas: { person: { day: { requests: 1 } } } });
    await (await quota.reserve(need(), signal)).settle(undefined);
    expect(await refusalOf(quota)).toBe("no refusal");
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 0 });
  });

  test("counts a request that the gateway refused, without tokens or pictures", async () => {
    const limits = { requests: 3, tokens: 100_000, pictures: 1 };
    const { quota, usage } = start({ quotas: { person: { minute: limits }, all: { day: limits } } });
    for (const pictures of [undefined, undefined, 1]) {
      const refused = await quota.reserve(need(pictures === undefined ? {} : { pictures }), signal);
      await refused.confirm(signal);
      await refused.settle(undefined);
      await refused.settle(undefined);
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
    expect(await refusalOf(quota)).toContain("My limit for everybody together of 3 requests per day is used up");
  });

  test("bounds an answer by what money pays for, at the price of the model", async () => {
    const prices = { currency: "EUR", models: { m: { input: 1_000, cachedInput: 100, output: 2_000 } } };
    const { quota, usage } = start({ prices, quotas: { all: { month: { money: 0.5 } }, answerTokens: 1_000 } });
    const { maxTokens, tight, settle } = await quota.reserve(need(), signal);
    // 0.50 less 0.10 for the prompt.
    expect([maxTokens, tight]).toEqual([200, "My limit for everybody together of 0.50 EUR per month"]);
    await settle({ ...spent(80, 100), cachedTokens: 30 });
    expect(await usage.readMonth("everyone")).toMatchObject({ costs: { EUR: 253_000_000 }, unpriced: 0 });
    expect(await quota.read(need().by)).toMatchObject([{ used: 253_000_000 }]);
    const next = await quota.reserve(need(), signal);
    await next.settle({ ...spent(80, 1), cost: 0.25 });
    expect(await refusalOf(quota)).toContain(
      "limit for everybody together of 0.50 EUR per month is used up (0.00 EUR left",
    );
  });

  test("counts pictures, whose tokens are no part of what people say", async () => {
    const { quota, usage } = start({
      prices: { currency: "USD", models: { "*": { picture: 0.04 } } },
      quotas: { person: { day: { pictures: 1, tokens: 10 } } },
    });
    const { settle } = await quota.reserve(need({ pictures: 1 }), signal);
    expect(await refusalOf(quota, need({ pictures: 1 }))).toContain("Not drawn: Your limit of 1 picture per day");
    await settle(spent(10, 1_000));
    expect(await usage.readMonth("everyone")).toMatchObject({ pictures: 1, costs: { USD: 40_000_000 } });
    expect((await quota.read(need().by)).find(({ measure }) => measure === "tokens")).toMatchObject({ used: 0 });
  });

  test("a limit that is used up and of no concern to a request refuses nothing", async () => {
    const { quota } = start({ quotas: { person: { day: { pictures: 0, requests: 5 } } } });
    expect(await refusalOf(quota)).toBe("no refusal");
    expect(await refusalOf(quota, need({ pictures: 1 }))).not.toContain("anew");
  });

  test("is lifted for a day, for one alone, while it counts on", async () => {
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

  test("a dead process's reservation counts as used when its turn is taken up, or after a quarter of an hour", async () => {
    const { quota, usage, counters, clock } = start({
      quotas: { person: { day: { tokens: 1_000 } }, answerTokens: 300 },
    });
    const turn = need();
    const dead = await quota.reserve(turn, signal);
    await dead.confirm(signal);
    const { settle } = await quota.reserve(turn, signal);
    await settle(spent(80, 20));
    // It was only slow: what it used is counted already.
    await dead.settle(spent(80, 20));
    expect(await quota.read(turn.by)).toMatchObject([{ used: 500, held: 0 }]);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 2, promptTokens: 160, estimatedTokens: 80 });
    await (await quota.reserve(need(), signal)).confirm(signal);
    clock.now += RESERVED_MS;
    expect(await counters.countHolds()).toBe(0);
    expect(await quota.read(turn.by)).toMatchObject([{ used: 900, held: 0 }]);
  });

  test("a reservation without a request counts nothing, and no request follows once it is another process's", async () => {
    const { quota, usage, counters, clock } = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    const turn = need();
    const dead = await quota.reserve(turn, signal);
    await quota.reserve(turn, signal);
    await expect(dead.confirm(signal)).rejects.toThrow("Please ask once more");
    clock.now += RESERVED_MS;
    expect(await counters.countHolds()).toBe(0);
    expect(await quota.read(turn.by)).toMatchObject([{ used: 0, held: 0 }]);
    expect(await usage.readMonth("everyone")).toMatchObject({ requests: 0, promptTokens: 0 });
  });

  test("is not passed by a request whose reservation cannot be confirmed", async () => {
    const { quota, database } = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    const { confirm } = await quota.reserve(need(), signal);
    database.close();
    await expect(confirm(signal)).rejects.toThrow("my memory is out of reach");
    const free = start({});
    const unbound = await free.quota.reserve(need(), signal);
    free.database.close();
    await unbound.confirm(signal);
  });

  test("refuses where the store is away, and lets everything pass where there are no limits", async () => {
    const limited = start({ quotas: { person: { day: { tokens: 1_000 } } } });
    limited.database.close();
    expect(await refusalOf(limited.quota)).toContain("my memory is out of reach");
    const free = start({});
    free.database.close();
    expect(await refusalOf(free.quota)).toBe("no refusal");
  });

  test("ten at once never use more than there is", async () => {
    const answers = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 10, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 100, max: 3_000 }), async (lengths, tokens) => {
        const { quota, usage, counters } = start({ quotas: { person: { day: { tokens } }, answerTokens: 300 } });
        await Promise.all(
          lengths.map(async (length) => {
            const reservation = await quota.reserve(need(), signal).catch(() => undefined);
            if (reservation === undefined) return;
            await reservation.settle(spent(90, Math.min(length, reservation.maxTokens ?? Number.POSITIVE_INFINITY)));
          }),
        );
        const { promptTokens, completionTokens } = await usage.readMonth("everyone");
        expect(promptTokens + completionTokens).toBeLessThanOrEqual(tokens);
        expect(await counters.countHolds()).toBe(0);
      }),
      { numRuns: 50 },
    );
  });
});
