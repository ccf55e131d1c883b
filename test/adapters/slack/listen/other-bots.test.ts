import { describe, expect, test } from "vitest";
import { type EventChannel, readSlackMessage } from "../../../../adapters/slack/listen/inbound.ts";
import { createOtherBots } from "../../../../adapters/slack/listen/other-bots.ts";
import { ACME } from "../workspace.ts";

const PLACE: EventChannel = { channelId: "C1", channelType: "channel" };

function say(ts: number, fields: Readonly<Record<string, unknown>>) {
  const said = readSlackMessage(
    { type: "message", text: "hi", ts: `${ts}.0`, thread_ts: "1.0", ...fields },
    PLACE,
    ACME,
  );
  if (said === undefined) throw new Error("Nobody said that.");
  return said;
}

const byBot = (ts: number, fields = {}) => say(ts, { user: "U9", bot_id: "B9", ...fields });

describe("other bots", () => {
  test("are heard when they are on the list, by either of their ids, and people always", () => {
    expect(createOtherBots([], () => 0).mayAsk(byBot(2))).toBe(false);
    expect(createOtherBots(["U9"], () => 0).mayAsk(byBot(2))).toBe(true);
    expect(createOtherBots(["B9"], () => 0).mayAsk(byBot(2))).toBe(true);
    expect(createOtherBots([], () => 0).mayAsk(say(2, { user: "U1" }))).toBe(true);
  });

  test("ask three times in a thread before a person says something there", () => {
    const bots = createOtherBots(["B9"], () => 0);
    expect([2, 3, 4, 5, 6].map((ts) => bots.mayAsk(byBot(ts)))).toEqual([true, true, true, false, false]);
    // Delivered again, it is no further question.
    expect(bots.mayAsk(byBot(2, {}))).toBe(false);
    expect(bots.mayAsk(byBot(7, { thread_ts: "other.0" }))).toBe(true);
    bots.mayAsk(say(8, { user: "U1" }));
    expect(bots.mayAsk(byBot(9))).toBe(true);
  });

  test("a message that is delivered twice counts once", () => {
    const bots = createOtherBots(["B9"], () => 0);
    expect([2, 2, 2, 3, 4].map((ts) => bots.mayAsk(byBot(ts)))).toEqual([true, true, true, true, true]);
    expect(bots.mayAsk(byBot(5))).toBe(false);
  });

  test("ask twenty times an hour in a channel, wherever they begin", () => {
    let nowMs = 0;
    const bots = createOtherBots(["B9"], () => nowMs);
    const ask = (ts: number) => bots.mayAsk(byBot(ts, { thread_ts: `${ts}.0` }));
    expect(Array.from({ length: 21 }, (_, index) => ask(index + 10)).filter(Boolean)).toHaveLength(20);
    nowMs += 3_600_001;
    expect(ask(100)).toBe(true);
  });
});
