import { describe, expect, test } from "vitest";
import { comeIn } from "../../lab/support/administrator.ts";
import { action, ada, ben, command, message } from "../../lab/support/events.ts";
import { createNames } from "../../src/admin/names.ts";
import type { Overview } from "../../src/admin/page/wire.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { startReplica } from "../support/dashboard.ts";

const PLACE = "Test · Acme · #general";

describe("the dashboard's overview", () => {
  test("the overview names the people and channels that cost most this month", async () => {
    const replica = await startReplica({ scripts: [["Yes."], ["Yes."], ["Yes."]] });
    const { usage } = replica;
    const reply = { platform: "test", channelId: "general" };
    await usage.note("1", { author: ada, reply, model: "m" }, { answers: 1, costs: { USD: 2e9 } });
    await usage.note("2", { author: ben, reply, model: "m" }, { answers: 1, promptTokens: 9_000, costs: { USD: 1e9 } });
    await replica.accept(message("hi", { author: ada }));
    await replica.idle();
    const { month } = await (await comeIn(replica.url)).read<Overview>("overview");
    // No answer to Ben is stored, and the platform does not know his name.
    expect(month.people.map(({ name, cost }) => [name, cost])).toEqual([
      ["Ada", "2.00 USD"],
      ["ben", "1.00 USD"],
    ]);
    expect(month.places).toMatchObject([{ name: PLACE, cost: "3.00 USD", answers: 3 }]);
    expect(month.all.cost).toBe("3.00 USD");
  });

  test("the overview shows failures of the last 24 hours and the reasons for bad ratings", async () => {
    const replica = await startReplica({ scripts: [["So far", new GatewayError("interrupted", "cut")], ["Yes."]] });
    await replica.accept(message("hi", { author: ben, conversationId: "test:b" }));
    await replica.idle();
    const question = message("hi");
    await replica.accept(question);
    await replica.idle();
    await replica.accept({ ...action("bad", toTurnId(question.key), { author: ada }), reason: "Too short" });
    await replica.idle();
    const overview = await (await comeIn(replica.url)).read<Overview>("overview");
    expect(overview.failures).toMatchObject([{ author: { name: "Ben" }, place: PLACE, outcome: "interrupted" }]);
    expect(overview.judgements).toMatchObject([{ isGood: false, reason: "Too short", by: "Ada", place: PLACE }]);
    expect(overview.turns).toEqual({ interrupted: 1, complete: 1 });
  });

  test("the overview names no person and quotes no reason after /forget", async () => {
    const replica = await startReplica();
    const question = message("hi");
    await replica.accept(question);
    await replica.idle();
    await replica.accept({ ...action("bad", toTurnId(question.key)), reason: "Too short" });
    await replica.accept(command("forget", "me for good"));
    await replica.idle();
    const overview = await (await comeIn(replica.url)).read<Overview>("overview");
    expect(overview.judgements).toEqual([]);
    expect(overview.month.people.map(({ name }) => name)).toEqual(["people whose data was erased"]);
    expect(JSON.stringify(overview)).not.toMatch(/Ada|ada|Too short/);
  });
});

describe("the names behind ids", () => {
  const place = { platform: "test", workspaceId: "T1", channelId: "C1" };

  test("two simultaneous look-ups of a name send one request to the platform", async () => {
    let calls = 0;
    const namePlace = async () => ({ workspace: "Acme", channel: `#general${(calls += 1)}` });
    const names = createNames({ adapterOf: () => ({ namePlace }), now: () => 0 });
    const found = await Promise.all([names.place(place), names.place(place)]);
    expect(found.map(({ text }) => text)).toEqual(["Test · Acme · #general1", "Test · Acme · #general1"]);
  });

  test("at most twenty look-ups of names reach the platform in a minute", async () => {
    let nowMs = 0;
    const asked = new Set<string>();
    const namePlace = async ({ channelId }: { channelId: string }) => {
      asked.add(channelId);
      return { channel: channelId };
    };
    const names = createNames({ adapterOf: () => ({ namePlace }), now: () => nowMs });
    const nameAll = () =>
      Promise.all(Array.from({ length: 30 }, (_, n) => names.place({ ...place, channelId: `C${n}` })));
    await nameAll();
    expect(asked.size).toBe(20);
    nowMs = 60_000;
    await nameAll();
    expect(asked.size).toBe(30);
  });

  test("the overview shows the id if it cannot look up the name", async () => {
    const fail = () => Promise.reject(new Error("the platform is away"));
    for (const adapter of [undefined, { namePlace: fail, findAuthor: fail }]) {
      const names = createNames({ adapterOf: () => adapter, now: () => 0 });
      expect((await names.place(place)).text).toBe("Test · T1 · C1");
      expect(await names.person("U1", place)).toBeUndefined();
    }
  });

  test("conversations of a platform without channel names share the platform's name", async () => {
    const names = createNames({ adapterOf: () => ({}), now: () => 0 });
    expect((await names.place(place)).text).toBe("Test");
    expect(names.placeKey(place)).toBe(names.placeKey({ ...place, channelId: "C2" }));
  });
});
