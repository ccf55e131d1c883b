import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createWebClient, postMessage } from "../../../lab/slack-sim/web-api.ts";
import { startSlack } from "../../support/slack.ts";
import { type StageOptions, startStage, TRANSPORTS } from "./stage.ts";
import { personOf } from "./workspace.ts";

describe.each(TRANSPORTS)("events of Slack over %s", (transport) => {
  const start = (options: StageOptions = {}) => startStage({ transport, ...options });

  test("a mention is one message, although Slack sends two events for it", async () => {
    const { slack, general, ada, events, message, heard } = await start();
    const { ts } = ada.mention(general, "hello there");
    const event = await message(0);
    await heard();
    const id = `slack:${slack.workspace.id}:${general.id}:${ts}`;
    const extra = { team: slack.workspace.id, user: ada.id, recipientTeam: slack.workspace.id };
    expect(event).toMatchObject({
      kind: "message",
      key: id,
      messageId: id,
      conversationId: id,
      text: "hello there",
      addressed: "bot",
      attachments: [],
      author: { id: personOf(slack, ada), name: "Ada", mayConfigure: false },
      reply: { platform: "slack", channelId: general.id, threadId: ts, replyToId: id, extra },
    });
    // Slack sends a different token with each of the two events.
    const others = JSON.stringify(event).replace(/"actionToken":"[^"]+"/, '"actionToken":""');
    const all = events.map((one) => JSON.stringify(one).replace(/"actionToken":"[^"]+"/, '"actionToken":""'));
    expect(all).toEqual(events.map(() => others));
  });

  test("in a channel the bot receives only mentions, and in its thread everything", async () => {
    const { slack, general, ada, bob, events, heard } = await start();
    const root = ada.say(general, "lunch?");
    bob.say(general, "soon", { thread: root });
    bob.say(general, `<@${ada.id}> now?`, { thread: root });
    ada.say(general, `or later, <@${slack.workspace.bot.id}>?`, { thread: root });
    await heard();
    const heardAs = events.map((event) =>
      event.kind === "message" ? `${event.addressed}: ${event.text}` : event.kind,
    );
    expect(new Set(heardAs)).toEqual(new Set(["open: soon", "other: @Ada now?", "bot: or later, @Palaver?"]));
  });

  test("the bot works in a channel shared with other organisations", async () => {
    const { slack, ada, message } = await start();
    const shared = slack.channel({ name: "shared", members: [ada], isShared: true });
    ada.upload(shared, [{ name: "cat.png", bytes: Buffer.from("cat") }], `<@${slack.workspace.bot.id}> look`);
    expect(await message(0)).toMatchObject({ text: "look", attachments: [{ platform: "slack" }] });
  });

  test("an edit contains the whole message, and the adapter takes no preview or notice for an edit", async () => {
    const { general, ada, bob, message, event, events, heard } = await start();
    const asked = ada.mention(general, "frist");
    await message(0);
    await heard();
    const before = events.length;
    ada.unfurl(asked);
    bob.react(asked, "eyes");
    bob.say(general, "a reply", { thread: asked });
    ada.edit(asked, "first");
    await heard();
    const after = events.slice(before).filter(({ key }) => key !== events[before]?.key || key.includes(":edit:"));
    const edited = await event(events.findIndex(({ kind }) => kind === "edited"));
    expect(edited).toMatchObject({
      text: "first",
      messageId: events[0]?.key,
      conversationId: events[0]?.conversationId,
    });
    expect(events.filter(({ kind }) => kind === "edited")).toHaveLength(1);
    expect(after.length).toBeGreaterThan(0);
  });

  test("a deletion is an event, even if a thread leaves a tombstone", async () => {
    const { general, ada, bob, events, heard } = await start();
    const lone = ada.mention(general, "lone");
    const root = ada.mention(general, "root");
    bob.say(general, "reply", { thread: root });
    await heard();
    ada.delete(lone);
    ada.delete(root);
    await heard();
    const deleted = events.filter(({ kind }) => kind === "deleted");
    expect(deleted).toMatchObject([lone, root].map(({ ts }) => ({ conversationId: expect.stringContaining(ts) })));
    expect(deleted.map(({ key }) => key)).toEqual(
      [lone, root].map(({ ts }) => expect.stringContaining(`${ts}:deleted`)),
    );
  });

  test("the bot ignores its own posts, edits and deletions", async () => {
    const { slack, general, ada, message, events, heard } = await start();
    const { ts } = ada.mention(general, "hello");
    await message(0);
    await heard();
    const before = events.length;
    const client = createWebClient(slack);
    slack.allow("ping");
    const text = `<@${slack.workspace.bot.id}> me`;
    const place = { channel: general.id, ts: await postMessage(client, { channel: general.id, thread_ts: ts, text }) };
    await client.chat.update({ ...place, text: `<@${slack.workspace.bot.id}> me again` });
    await client.chat.delete(place);
    await heard();
    expect(events.slice(before)).toEqual([]);
  });

  test("messages of other bots and of people who join are ignored", async () => {
    const { slack, general, ada, events, heard } = await start();
    const alarm = slack.user({ name: "Alarm", isBot: true });
    alarm.mention(general, "fire");
    alarm.say(general, "more", { thread: ada.say(general, "hm") });
    ada.join(general);
    await heard();
    expect(events).toEqual([]);
  });

  test("the bot answers a listed bot that mentions this one, but not endlessly", async () => {
    const slack = await startSlack();
    const alarm = slack.user({ name: "Alarm", isBot: true });
    const { general, ada, events, heard } = await start({ slack, allowedBots: [alarm.id] });
    const root = ada.say(general, "hm");
    alarm.say(general, "not for the bot", { thread: root });
    for (let count = 1; count <= 5; count++) {
      alarm.mention(general, `question ${count}`, { thread: root });
      await heard();
    }
    const texts = () => [...new Set(events.map((event) => (event.kind === "message" ? event.text : event.kind)))];
    expect(texts()).toEqual(["question 1", "question 2", "question 3"]);
    ada.say(general, "go on", { thread: root });
    await heard();
    alarm.mention(general, "question 6", { thread: root });
    await heard();
    expect(texts().slice(3)).toEqual(["go on", "question 6"]);
  });

  test("the adapter acknowledges an event only after storing it", async () => {
    const stored = Promise.withResolvers<void>();
    const { slack, ada, events } = await start({ accept: () => stored.promise });
    ada.dm("hello");
    const delivery = await slack.until(() => slack.deliveries[0], "the delivery");
    ada.dm("and more");
    expect(delivery.isSettled).toBe(false);
    expect(events).toEqual([]);
    stored.resolve();
    await slack.acknowledged();
    expect(events).toHaveLength(2);
  });

  test("the adapter acknowledges an event that it is storing at shutdown, and no later event", async () => {
    const stored = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { slack, ada, adapter, events } = await start({
      accept() {
        begun.resolve();
        return stored.promise;
      },
    });
    ada.dm("hello");
    await begun.promise;
    const pausing = adapter.pause();
    // During these turns of the event loop, a shutdown that did not wait would end.
    for (let turn = 0; turn < 20; turn++) await setImmediate();
    stored.resolve();
    await pausing;
    const delivery = await slack.until(() => slack.deliveries[0], "the delivery");
    await delivery.outcome;
    expect(delivery.attempts).toMatchObject([{ isAcknowledged: true }]);
    expect(events).toHaveLength(1);
  });

  test("an edit or a deletion that arrives before its message still counts", async () => {
    const { slack, ada, events, heard } = await start();
    const letGo = slack.hold();
    const edited = ada.dm("frist");
    ada.edit(edited, "first");
    ada.delete(ada.dm("never mind"));
    letGo("reversed");
    await heard();
    const messages = events.filter(({ kind }) => kind === "message");
    expect(messages).toMatchObject([{ text: "first" }]);
  });
});
