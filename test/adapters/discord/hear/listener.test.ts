import { describe, expect, test } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { createFiles } from "../../../../adapters/discord/api/files.ts";
import type { Rooms } from "../../../../adapters/discord/api/rooms.ts";
import { createDelivery } from "../../../../adapters/discord/hear/delivery.ts";
import { createListener } from "../../../../adapters/discord/hear/listener.ts";
import { createActivity } from "../../../../adapters/discord/hear/threads.ts";
import type { Message } from "../../../../adapters/discord/hear/wording.ts";
import { silent } from "../../../../lab/support/log.ts";
import type { InboundEvent, MessageEvent } from "../../../../src/port/events.ts";
import { NO_ROOMS } from "../stage.ts";

const BOT = "100000000000000001";
const NO_API: Api = { call: () => Promise.reject(new Error("not part of this test")), settled: async () => {} };
const ROOMS: Rooms = { ...NO_ROOMS, kindOf: (_, guildId) => (guildId === undefined ? "direct" : "channel") };

function start(accept?: (event: InboundEvent) => Promise<void>, messages: readonly Message[] = []) {
  const events: InboundEvent[] = [];
  const delivery = createDelivery(async (event) => {
    await accept?.(event);
    events.push(event);
  }, silent);
  const files = createFiles({ api: NO_API, now: Date.now });
  const deps = { rooms: ROOMS, files, delivery, activity: createActivity(Date.now), now: Date.now };
  const listener = createListener({
    ...deps,
    place: async (event) => event,
    tellNotAllowed: async () => {},
    findMember: async () => undefined,
    findMessage: async ({ messageId }) => messages.find(({ id }) => id === messageId),
    botId: () => BOT,
  });
  return { listener, events, delivery, drained: () => delivery.enqueue("c", async () => []) };
}

let made = 0;

function packet(content: string, more: Partial<Message> = {}): Message {
  made += 1;
  return {
    id: String(BigInt(Date.now() - 1_420_070_400_000) * 4_194_304n + BigInt(made)),
    channel_id: "c",
    author: { id: "200000000000000001", username: "ada", global_name: "Ada", discriminator: "0", avatar: null },
    content,
    timestamp: new Date().toISOString(),
    edited_timestamp: null,
    tts: false,
    mention_everyone: false,
    mentions: [],
    mention_roles: [],
    attachments: [],
    embeds: [],
    pinned: false,
    type: 0,
    flags: 0,
    ...more,
  } as Message;
}

const texts = (events: readonly InboundEvent[]) => events.map((event) => (event as MessageEvent).text);

describe("the Discord listener", () => {
  test("the listener finds mentions in the text if a server lists none, except in code or after a backslash", async () => {
    const { listener, events, drained } = start();
    const code = [`\`<@${BOT}>\` pings`, `\`\`\`\n<@${BOT}>\n\`\`\``, `write \\<@${BOT}>`];
    for (const content of [`<@${BOT}> hello`, ...code]) listener.onMessage(packet(content, { guild_id: "g" }));
    await drained();
    expect(texts(events)).toEqual(["hello"]);
  });

  test("the listener accepts a reply that has neither the replied-to message nor the type of a reply", async () => {
    const bot = { id: BOT, username: "palaver" } as Message["author"];
    const [answer, stranger] = [packet("an answer", { author: bot }), packet("not for the bot")];
    const { listener, events, drained } = start(undefined, [answer, stranger]);
    const toReply = (message_id: string) => ({
      guild_id: "g",
      message_reference: { message_id, channel_id: "c", type: 0 },
    });
    listener.onMessage(packet("go on", toReply(answer.id)));
    listener.onMessage(packet("indeed", toReply(stranger.id)));
    listener.onMessage(packet("gone", { ...toReply("1"), type: 19 }));
    await drained();
    expect(events).toMatchObject([{ text: "go on", addressed: "bot", inReplyTo: `discord:c:${answer.id}` }]);
  });

  test("the listener passes on an edit that has only the changed fields, and ignores an edit that only adds a preview", async () => {
    const asked = packet("tell me of cats");
    const messages = [{ ...asked, content: "tell me of dogs" }];
    const { listener, events, drained } = start(undefined, messages);
    listener.onMessage(asked);
    const { id, channel_id } = asked;
    listener.onEdit({ id, channel_id, embeds: [{ title: "Cats" }] } as Message);
    listener.onEdit({ id: "1", channel_id, content: "of people" } as Message);
    listener.onEdit({ id, channel_id, content: "tell me of dogs" } as Message);
    await drained();
    expect(events).toMatchObject([{ kind: "message" }, { kind: "edited", text: "tell me of dogs" }]);
  });

  test("the listener accepts a message without any of the lists that can be empty", async () => {
    const { listener, events, drained } = start();
    const { id, author, timestamp } = packet("");
    const bare = { id, author, timestamp, channel_id: "c", guild_id: "g" };
    listener.onMessage({ ...bare, content: `<@${BOT}> hello` } as Message);
    await drained();
    expect(events).toMatchObject([{ kind: "message", text: "hello", attachments: [], addressed: "bot" }]);
    for (const words of ["changed", "changed again"]) {
      listener.onEdit({ ...bare, content: `<@${BOT}> ${words}` } as Message);
    }
    await drained();
    expect(events.slice(1)).toMatchObject([{ text: "changed" }, { text: "changed again" }]);
    expect(new Set(events.map(({ key }) => key)).size).toBe(3);
  });

  test("the listener passes on a message once even if a resumed session repeats it", async () => {
    const { listener, events, drained } = start();
    const message = packet("hello");
    for (let count = 0; count < 3; count++) listener.onMessage(message);
    await drained();
    expect(events).toHaveLength(1);
  });

  test("the listener passes on a message again if it could not be stored the first time", async () => {
    let isBroken = true;
    const failed = Promise.withResolvers<void>();
    const { listener, events, delivery, drained } = start(async () => {
      if (!isBroken) return;
      failed.resolve();
      throw new Error("the disk is full");
    });
    const message = packet("hello");
    listener.onMessage(message);
    await failed.promise;
    await delivery.stop();
    isBroken = false;
    listener.onMessage(message);
    await drained();
    expect(texts(events)).toEqual(["hello"]);
  });

  test("the listener treats an edit without content as unreadable, not as an empty message", async () => {
    const { listener, events, drained } = start();
    const message = packet("hello");
    listener.onMessage(message);
    listener.onEdit({ ...message, content: "", edited_timestamp: new Date().toISOString() });
    await drained();
    expect(events).toHaveLength(1);
  });

  test("the listener ignores ephemeral messages, notices about polls, and all events before it knows the bot's id", async () => {
    const { listener, events, drained } = start();
    listener.onMessage(packet("for your eyes", { flags: 64 }));
    listener.onMessage(packet("pinned", { type: 6 }));
    listener.onMessage(packet("starter", { type: 21 }));
    await drained();
    expect(events).toEqual([]);
  });

  test("the listener quotes a long message from its beginning", async () => {
    const { listener, events, drained } = start();
    const snapshot = { message: { content: `x${"👨‍👩‍👧".repeat(1_000)}`, attachments: [] } };
    listener.onMessage(packet("look", { message_snapshots: [snapshot] as never }));
    await drained();
    expect(texts(events)).toEqual([`look\n\nForwarded:\n> x${"👨‍👩‍👧".repeat(249)}…`]);
  });
});
