import { describe, expect, test } from "vitest";
import { toAttachments } from "../../../../adapters/slack/api/files.ts";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { type EventChannel, readSlackMessage, type SlackMessage } from "../../../../adapters/slack/hear/inbound.ts";
import { createKnownMessages, createListener, createOtherBots } from "../../../../adapters/slack/hear/listener.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { ACME, fakeNames } from "../workspace.ts";

/** One minute after Slack's time of the messages below. */
const NOW_MS = 160_000;

function start({ nowMs = NOW_MS }: { nowMs?: number } = {}) {
  const events: InboundEvent[] = [];
  const listener = createListener({
    people: fakeNames({ U1: "Ada" }),
    toAttachments,
    otherBots: createOtherBots(["B9"], () => nowMs),
    delivery: { enqueue: async (_, toEvents) => void events.push(...(await toEvents())) },
    now: () => nowMs,
  });
  return { events, hear: (event: Body) => listener({ type: "message", channel: "C1", ...event }, ACME) };
}

const said = (text: string, fields: Body = {}) => ({ user: "U1", text, ts: "100.0", ...fields });

function changed(before: Body | undefined, after: Body): Body {
  return {
    subtype: "message_changed",
    hidden: true,
    message: { ...after, edited: { user: "U1", ts: "110.0" } },
    ...(before !== undefined && { previous_message: before }),
    event_ts: "111.0",
  };
}

describe("the Slack listener", () => {
  test("an edit and its repeated delivery have the same key", async () => {
    const { events, hear } = start();
    const edit = changed(said("<@UBOT> frist"), said("<@UBOT> first"));
    await hear(edit);
    await hear({ ...edit, event_ts: "222.0" });
    expect(events.map(({ key }) => key)).toEqual(["slack:T1:C1:100.0:edit:110.0", "slack:T1:C1:100.0:edit:110.0"]);
    expect(events[0]).toMatchObject({ kind: "edited", text: "first", conversationId: "slack:T1:C1:100.0", at: NOW_MS });
  });

  test("the listener ignores an older edit that Slack repeats after a later edit", async () => {
    const { events, hear } = start();
    const older = changed(said("<@UBOT> one"), said("<@UBOT> two"));
    const later = changed(said("<@UBOT> two"), said("<@UBOT> three"));
    await hear({ ...later, message: { ...(later["message"] as Body), edited: { user: "U1", ts: "112.0" } } });
    await hear(older);
    expect(events).toMatchObject([{ kind: "edited", text: "three" }]);
  });

  test("the listener ignores the mention event that Slack repeats after an edit", async () => {
    const { events, hear } = start();
    await hear({ type: "app_mention", ...said("<@UBOT> first", { edited: { user: "U1", ts: "110.0" } }) });
    expect(events).toEqual([]);
  });

  test("the listener passes on an edit that removes the mention, because the bot knew the message", async () => {
    const { events, hear } = start();
    await hear(changed(said("<@UBOT> hello"), said("hello")));
    expect(events).toMatchObject([{ kind: "edited", text: "hello" }]);
  });

  test("the listener treats a message as new if an edit adds a mention, unless the message is old", async () => {
    const edit = changed(said("hello"), said("<@UBOT> hello"));
    const fresh = start();
    await fresh.hear(edit);
    expect(fresh.events).toMatchObject([{ kind: "message", key: "slack:T1:C1:100.0" }]);
    const late = start({ nowMs: NOW_MS + 15 * 60_000 });
    await late.hear(edit);
    expect(late.events).toEqual([]);
  });

  test("an edit that adds a mention asks a question, even in a thread that the bot already follows", async () => {
    const { events, hear } = start();
    const thread = { ts: "150.0", thread_ts: "100.0" };
    const open = said("hello", thread);
    const asked = said("<@UBOT> hello", thread);
    await hear(changed(open, asked));
    await hear(open);
    expect(events).toMatchObject([{ kind: "edited", text: "hello", addressed: "bot" }]);
    const other = start();
    await other.hear(changed(asked, said("<@UBOT> hello again", thread)));
    const late = start({ nowMs: NOW_MS + 15 * 60_000 });
    await late.hear(changed(open, asked));
    expect([...other.events, ...late.events].map((event) => "addressed" in event)).toEqual([false, false]);
  });

  test("the listener passes on a complete edit if Slack omits the former text", async () => {
    const { events, hear } = start();
    const edit = changed(undefined, said("<@UBOT> first"));
    await hear(edit);
    await hear(changed(undefined, said("lunch?", { ts: "101.0" })));
    expect(events).toMatchObject([
      { kind: "message", key: "slack:T1:C1:100.0", text: "first", addressed: "bot" },
      { kind: "edited", key: "slack:T1:C1:100.0:edit:110.0", text: "first" },
      { kind: "edited", text: "lunch?" },
    ]);
    const preview = { subtype: "message_changed", message: said("<@UBOT> first"), event_ts: "112.0" };
    await hear(preview);
    expect(events).toHaveLength(3);
  });

  test("the listener passes on a deletion even if Slack omits the deleted message, and passes on no later edit", async () => {
    const { events, hear } = start();
    await hear({ subtype: "message_deleted", deleted_ts: "100.0", previous_message: null });
    const id = "slack:T1:C1:100.0";
    expect(events).toMatchObject([{ kind: "deleted", key: `${id}:deleted`, messageId: id, conversationId: id }]);
    await hear(changed(undefined, said("<@UBOT> back")));
    expect(events).toHaveLength(1);
  });

  test("the listener passes on the removal of a file from a message", async () => {
    const { events, hear } = start();
    const files = [{ id: "F1", name: "cat.png", size: 3 }];
    await hear(changed(said("<@UBOT> look", { files }), said("<@UBOT> look")));
    expect(events).toMatchObject([{ kind: "edited", attachments: [] }]);
  });

  test("the listener ignores edits by bots, including the bot's own", async () => {
    const { events, hear } = start();
    await hear(changed(said("<@UBOT> a", { bot_id: "B8" }), said("<@UBOT> b", { bot_id: "B8" })));
    await hear(changed(said("a", { user: "UBOT", bot_id: "B1" }), said("<@UBOT> b", { user: "UBOT", bot_id: "B1" })));
    expect(events).toEqual([]);
    await hear(changed(said("<@UBOT> a", { bot_id: "B9" }), said("<@UBOT> b", { bot_id: "B9" })));
    expect(events).toHaveLength(1);
  });

  test("the listener ignores unreadable events", async () => {
    const { events, hear } = start();
    const odd = [
      { channel: undefined },
      { subtype: "message_changed" },
      { subtype: "message_changed", message: null, previous_message: 5 },
      { subtype: "message_deleted" },
      { subtype: "message_deleted", deleted_ts: "100.0", previous_message: 5 },
      { text: 5, ts: "100.0", user: "U1" },
      { subtype: "of tomorrow", ...said("<@UBOT> hi") },
    ];
    for (const event of odd) await hear(event);
    expect(events).toEqual([]);
  });
});

test("the listener forgets the oldest edits and deletions first", () => {
  const known = createKnownMessages();
  const message = { text: "first" } as SlackMessage;
  for (let count = 0; count <= 5_000; count++) known.setDeleted(`${count}`);
  expect([known.latest("0", message), known.latest("1", message)]).toEqual([message, undefined]);
});

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

describe("other bots on Slack", () => {
  test("the bot answers people, and those bots that the list names by either of their ids", () => {
    expect(createOtherBots([], () => 0).mayAsk(byBot(2))).toBe(false);
    expect(createOtherBots(["U9"], () => 0).mayAsk(byBot(2))).toBe(true);
    expect(createOtherBots(["B9"], () => 0).mayAsk(byBot(2))).toBe(true);
    expect(createOtherBots([], () => 0).mayAsk(say(2, { user: "U1" }))).toBe(true);
  });

  test("another bot can ask at most three times in a thread before a person writes there", () => {
    const bots = createOtherBots(["B9"], () => 0);
    // A repeated delivery is not another question.
    const asked = [2, 2, 2, 3, 4, 5, 6].map((ts) => bots.mayAsk(byBot(ts)));
    expect(asked).toEqual([true, true, true, true, true, false, false]);
    expect(bots.mayAsk(byBot(7, { thread_ts: "other.0" }))).toBe(true);
    bots.mayAsk(say(8, { user: "U1" }));
    expect(bots.mayAsk(byBot(9))).toBe(true);
  });

  test("another bot can ask twenty times an hour in a channel, in any of its threads", () => {
    let nowMs = 0;
    const bots = createOtherBots(["B9"], () => nowMs);
    const ask = (ts: number) => bots.mayAsk(byBot(ts, { thread_ts: `${ts}.0` }));
    expect(Array.from({ length: 21 }, (_, index) => ask(index + 10)).filter(Boolean)).toHaveLength(20);
    nowMs += 3_600_001;
    expect(ask(100)).toBe(true);
  });
});
