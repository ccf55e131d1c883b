import { describe, expect, test } from "vitest";
import { toAttachments } from "../../../../adapters/slack/api/attachments.ts";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import type { SlackMessage } from "../../../../adapters/slack/listen/inbound.ts";
import { createKnownMessages, createListener } from "../../../../adapters/slack/listen/listener.ts";
import { createOtherBots } from "../../../../adapters/slack/listen/other-bots.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { ACME, fakeNames } from "../workspace.ts";

/** Slack's time of the messages below, and a minute more. */
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

describe("the listener", () => {
  test("gives an edit a key that a repetition of it has too", async () => {
    const { events, hear } = start();
    const edit = changed(said("<@UBOT> frist"), said("<@UBOT> first"));
    await hear(edit);
    await hear({ ...edit, event_ts: "222.0" });
    expect(events.map(({ key }) => key)).toEqual(["slack:T1:C1:100.0:edit:110.0", "slack:T1:C1:100.0:edit:110.0"]);
    expect(events[0]).toMatchObject({ kind: "edited", text: "first", conversationId: "slack:T1:C1:100.0", at: NOW_MS });
  });

  test("leaves an older edit alone that is told once more after a later one", async () => {
    const { events, hear } = start();
    const older = changed(said("<@UBOT> one"), said("<@UBOT> two"));
    const later = changed(said("<@UBOT> two"), said("<@UBOT> three"));
    await hear({ ...later, message: { ...(later["message"] as Body), edited: { user: "U1", ts: "112.0" } } });
    await hear(older);
    expect(events).toMatchObject([{ kind: "edited", text: "three" }]);
  });

  test("does not hear the mention that Slack repeats after an edit", async () => {
    const { events, hear } = start();
    await hear({ type: "app_mention", ...said("<@UBOT> first", { edited: { user: "U1", ts: "110.0" } }) });
    expect(events).toEqual([]);
  });

  test("hears an edit that takes the mention away, since the bot had heard the message", async () => {
    const { events, hear } = start();
    await hear(changed(said("<@UBOT> hello"), said("hello")));
    expect(events).toMatchObject([{ kind: "edited", text: "hello" }]);
  });

  test("takes a message to which an edit adds the mention as a new one, unless it is old", async () => {
    const edit = changed(said("hello"), said("<@UBOT> hello"));
    const fresh = start();
    await fresh.hear(edit);
    expect(fresh.events).toMatchObject([{ kind: "message", key: "slack:T1:C1:100.0" }]);
    const late = start({ nowMs: NOW_MS + 15 * 60_000 });
    await late.hear(edit);
    expect(late.events).toEqual([]);
  });

  test("asks for an answer where an edit adds the mention, in a thread in which the message was heard before", async () => {
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

  test("hands an edited message over whole where Slack does not show its former text", async () => {
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

  test("hears of a deletion also where Slack does not show what was deleted, and of no edit after it", async () => {
    const { events, hear } = start();
    await hear({ subtype: "message_deleted", deleted_ts: "100.0", previous_message: null });
    const id = "slack:T1:C1:100.0";
    expect(events).toMatchObject([{ kind: "deleted", key: `${id}:deleted`, messageId: id, conversationId: id }]);
    await hear(changed(undefined, said("<@UBOT> back")));
    expect(events).toHaveLength(1);
  });

  test("hears of a file that is taken away", async () => {
    const { events, hear } = start();
    const files = [{ id: "F1", name: "cat.png", size: 3 }];
    await hear(changed(said("<@UBOT> look", { files }), said("<@UBOT> look")));
    expect(events).toMatchObject([{ kind: "edited", attachments: [] }]);
  });

  test("ignores edits by bots, its own included", async () => {
    const { events, hear } = start();
    await hear(changed(said("<@UBOT> a", { bot_id: "B8" }), said("<@UBOT> b", { bot_id: "B8" })));
    await hear(changed(said("a", { user: "UBOT", bot_id: "B1" }), said("<@UBOT> b", { user: "UBOT", bot_id: "B1" })));
    expect(events).toEqual([]);
    await hear(changed(said("<@UBOT> a", { bot_id: "B9" }), said("<@UBOT> b", { bot_id: "B9" })));
    expect(events).toHaveLength(1);
  });

  test("hears the deletion of a message that it had heard, in both of Slack's forms", async () => {
    const { events, hear } = start();
    const deleted = (before: Body): Body => ({
      subtype: "message_deleted",
      deleted_ts: "100.0",
      previous_message: before,
    });
    await hear(deleted(said("<@UBOT> hello")));
    await hear(deleted(said("hello")));
    await hear(deleted(said("mine", { user: "UBOT", bot_id: "B1" })));
    const stone = { subtype: "tombstone", user: "USLACKBOT", ts: "100.0", thread_ts: "100.0" };
    await hear({ subtype: "message_changed", message: stone, previous_message: said("<@UBOT> hello") });
    expect(events.map(({ kind, key }) => [kind, key])).toEqual([
      ["deleted", "slack:T1:C1:100.0:deleted"],
      ["deleted", "slack:T1:C1:100.0:deleted"],
    ]);
  });

  test("ignores events that it cannot read", async () => {
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

const messageOf = (text: string) => ({ text }) as SlackMessage;

describe("an edit or a deletion that overtakes its message", () => {
  test("an edit takes the place of the message, and a deletion leaves none", () => {
    const known = createKnownMessages();
    expect(known.latest("a", messageOf("first"))).toEqual(messageOf("first"));
    known.setEdited("a", messageOf("edited"));
    expect(known.latest("a", messageOf("first"))).toEqual(messageOf("edited"));
    known.setDeleted("a");
    expect(known.latest("a", messageOf("first"))).toBeUndefined();
  });

  test("a deleted message stays deleted", () => {
    const known = createKnownMessages();
    known.setDeleted("a");
    known.setEdited("a", messageOf("edited"));
    expect(known.latest("a", messageOf("first"))).toBeUndefined();
  });

  test("is forgotten when there is too much of it, the oldest first", () => {
    const known = createKnownMessages();
    for (let count = 0; count <= 5_000; count++) known.setDeleted(`${count}`);
    expect(known.latest("0", messageOf("first"))).toBeDefined();
    expect(known.latest("1", messageOf("second"))).toBeUndefined();
  });
});
