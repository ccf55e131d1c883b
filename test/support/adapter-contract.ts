import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import type { Adapter } from "../../src/port/adapter.ts";
import { SinkError } from "../../src/port/errors.ts";
import type { Accept, EarlierMessage, InboundEvent, MessageEvent } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Draft } from "../../src/port/sink.ts";
import { eventually } from "./eventually.ts";

export interface SeenMessage {
  text: string;
  fileNames: string[];
  buttons: string[];
}

/**
 * An adapter that listens, and people's actions on its platform. Each action resolves when the platform has completed
 * it.
 */
export interface AdapterUnderTest {
  adapter: Adapter;
  /** How people mention that person in a text here. */
  mention: string;
  /** A person addresses the bot, which starts a conversation. Rejects if the delivery is not acknowledged. */
  begin: (text: string, file?: { name: string; bytes: Uint8Array }) => Promise<void>;
  /** The same person writes again in the newest conversation. */
  goOn: (text: string) => Promise<void>;
  /** The platform delivers the newest message again, as it does after a lost acknowledgement. */
  redeliver: () => Promise<void>;
  editNewest: (text: string) => Promise<void>;
  deleteNewest: () => Promise<void>;
  press: (messageId: string, label: string) => Promise<void>;
  /** Absent if the adapter reads no earlier messages. */
  discussion?: Discussion;
  /** The bot's messages in the newest conversation, oldest first. */
  seen: () => Promise<SeenMessage[]>;
  close: () => Promise<void>;
}

/** People in a channel, and in the thread under its first message. Nothing here waits for the bot. */
export interface Discussion {
  /** Writes something that addresses no one. */
  say: (text: string, where: "channel" | "thread") => void;
  ask: (text: string, where: "channel" | "thread") => void;
}

/** The differences of a platform, each with its reason. */
export interface Differences {
  noRedelivery?: string;
  noEdits?: string;
  noAttachments?: string;
  noDiscussion?: string;
}

export type StartAdapter = (accept: Accept) => Promise<AdapterUnderTest>;

const signal = new AbortController().signal;

function draft(markdown: string, more: Partial<Draft> = {}): Draft {
  return { markdown, buttons: [], streaming: false, ...more };
}

/** Tests the common behavior of all adapters with one of them. */
export function adapterContract(name: string, start: StartAdapter, differences: Differences = {}): void {
  describe(`the port's promises, kept by the ${name} adapter`, () => {
    let under: AdapterUnderTest | undefined;
    let events: InboundEvent[] = [];

    async function begin(accept: Accept = async () => {}): Promise<AdapterUnderTest> {
      events = [];
      under = await start(async (event) => {
        await accept(event);
        events.push(event);
      });
      return under;
    }

    function firstMessage(): MessageEvent {
      const [event] = events;
      if (event?.kind !== "message") throw new Error("No message was accepted.");
      return event;
    }

    afterEach(async () => {
      await under?.close();
      under = undefined;
    });

    describeInbound(begin, () => events, firstMessage, differences);
    describeEarlier(begin, () => events, firstMessage, differences);
    describeOutbound(begin, firstMessage);
    describeLifetime(begin, () => events, firstMessage);
  });
}

type Begin = (accept?: Accept) => Promise<AdapterUnderTest>;

function describeInbound(
  begin: Begin,
  events: () => InboundEvent[],
  first: () => MessageEvent,
  not: Differences,
): void {
  test("the adapter delivers a message that addresses the bot, as plain JSON", async () => {
    const { adapter, begin: write } = await begin();
    await write("hello there");
    expect(events()).toHaveLength(1);
    const event = first();
    expect(event).toMatchObject({ text: "hello there", addressed: "bot", attachments: [] });
    expect(event.author.name).not.toBe("");
    for (const id of [event.messageId, event.conversationId, event.key])
      expect(id.startsWith(`${adapter.platform}:`)).toBe(true);
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  });

  test("the adapter shows mentions by the names that their people have as authors", async () => {
    const { begin: write, mention } = await begin();
    await write(`is ${mention} here?`);
    const { text, author } = first();
    expect(text).toBe(`is @${author.name} here?`);
  });

  test("the adapter keeps the messages of one conversation together, and two conversations apart", async () => {
    const { begin: write, goOn } = await begin();
    await write("one");
    await goOn("still one");
    await write("two");
    const [one, again, two] = events().map((event) => event.conversationId);
    expect(again).toBe(one);
    expect(two).not.toBe(one);
    expect(new Set(events().map((event) => event.key)).size).toBe(3);
  });

  test.skipIf(not.noRedelivery !== undefined)(
    "the adapter gives a message that is delivered twice the same key",
    async () => {
      const { begin: write, redeliver } = await begin();
      await write("once");
      await redeliver();
      expect(new Set(events().map((event) => event.key)).size).toBe(1);
    },
  );

  test.skipIf(not.noEdits !== undefined)(
    "the adapter delivers edits and deletions under the message's id",
    async () => {
      const { begin: write, editNewest, deleteNewest } = await begin();
      await write("first words");
      await editNewest("other words");
      await deleteNewest();
      const { messageId, conversationId } = first();
      expect(events().slice(1)).toMatchObject([
        { kind: "edited", messageId, conversationId, text: "other words" },
        { kind: "deleted", messageId, conversationId },
      ]);
    },
  );

  test.skipIf(not.noAttachments !== undefined)(
    "the adapter opens attached files byte for byte, repeatedly",
    async () => {
      const bytes = new Uint8Array(300_000).map((_, index) => index % 251);
      const { adapter, begin: write } = await begin();
      await write("look", { name: "数.bin", bytes });
      const [ref] = first().attachments;
      if (ref === undefined) throw new Error("The file is missing.");
      expect(ref).toMatchObject({ platform: adapter.platform, name: "数.bin", sizeBytes: bytes.length });
      for (const _ of [1, 2]) {
        const chunks: Uint8Array[] = [];
        for await (const chunk of await adapter.openAttachment(ref, signal)) chunks.push(chunk);
        expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
      }
    },
  );

  test("the adapter does not deliver the bot's own messages", async () => {
    const { adapter, begin: write, goOn } = await begin();
    await write("hello");
    await adapter.sink(first().reply, NO_RIGHT).post(draft("my own words"), randomUUID(), signal);
    await goOn("go on");
    expect(events()).toMatchObject([{ text: "hello" }, { text: "go on" }]);
  });
}

function describeEarlier(
  begin: Begin,
  events: () => InboundEvent[],
  first: () => MessageEvent,
  not: Differences,
): void {
  async function discuss(where: "channel" | "thread", maxMessages: number) {
    const { adapter, discussion } = await begin();
    if (discussion === undefined) throw new Error("Nobody talks there.");
    discussion.say("the plan", "channel");
    for (const text of ["one", "two"]) discussion.say(text, where);
    discussion.ask("what now?", where);
    const isAsked = (event: InboundEvent) => event.kind === "message" && event.addressed === "bot";
    await eventually(() => events().some(isAsked)).toBe(true);
    const event = events().find(isAsked) as MessageEvent;
    const { reply, messageId } = event;
    const before = await adapter.readEarlier?.(event, { maxMessages }, signal);
    const channel = await adapter.readChannel?.(reply, [messageId], maxMessages, signal);
    return { adapter, event, before: before?.messages ?? [], isPartial: before?.isPartial, channel: channel ?? [] };
  }
  const textsOf = (messages: readonly EarlierMessage[]) => messages.map(({ text }) => text);

  test("the adapter reads earlier messages, or the platform has none", async () => {
    const { adapter } = await begin();
    const reads = [adapter.readEarlier, adapter.readChannel].map((read) => read !== undefined);
    expect(reads).toEqual(Array.from({ length: 2 }, () => not.noDiscussion === undefined));
  });

  describe.skipIf(not.noDiscussion !== undefined)("questions in the middle of a discussion", () => {
    test("the adapter reads the thread up to the question, oldest first, with its first message marked", async () => {
      const { adapter, event, before, isPartial, channel } = await discuss("thread", 15);
      expect(textsOf(before)).toEqual(["the plan", "one", "two"]);
      expect(before.map(({ isRoot }) => isRoot)).toEqual([true, undefined, undefined]);
      expect(isPartial).toBeUndefined();
      expect(new Set(before.map(({ messageId }) => messageId)).size).toBe(3);
      for (const { messageId, author, by } of before) {
        expect(messageId.startsWith(`${adapter.platform}:`)).toBe(true);
        expect([author.id, author.name, by]).toEqual([event.author.id, event.author.name, undefined]);
      }
      expect(JSON.parse(JSON.stringify(before))).toEqual(before);
      // Messages next to the thread do not belong to it.
      expect(channel).toEqual([]);
    });

    test("the adapter reads the newest messages of a thread and its first one, and reports that there are more", async () => {
      const { before, isPartial } = await discuss("thread", 1);
      expect([textsOf(before), isPartial]).toEqual([["the plan", "two"], true]);
    });

    test("the adapter reads the messages of a thread since a time, without its first one", async () => {
      const { adapter, event, before } = await discuss("thread", 15);
      const [, one] = before;
      const readSince = async (since: number) =>
        textsOf((await adapter.readEarlier?.(event, { since, maxMessages: 15 }, signal))?.messages ?? []);
      expect(await readSince(one?.at ?? 0)).toEqual(["one", "two"]);
      expect(await readSince(event.at + 1)).toEqual([]);
    });

    test("the adapter reads the last messages of a channel before the question, oldest first", async () => {
      const { channel } = await discuss("channel", 15);
      expect(textsOf(channel)).toEqual(["the plan", "one", "two"]);
      expect(JSON.parse(JSON.stringify(channel))).toEqual(channel);
    });

    test("the adapter reads no more of a channel than requested", async () => {
      expect(textsOf((await discuss("channel", 2)).channel)).toEqual(["one", "two"]);
    });

    test("the adapter reads nothing above the message that started a thread", async () => {
      const { adapter, begin: write } = await begin();
      await write("hello");
      const { reply, messageId } = first();
      expect((await adapter.readEarlier?.(first(), { maxMessages: 15 }, signal))?.messages).toEqual([]);
      expect(await adapter.readChannel?.(reply, [messageId], 15, signal)).toEqual([]);
    });
  });
}

function describeOutbound(begin: Begin, first: () => MessageEvent): void {
  test("the adapter posts, edits, uploads and removes messages visibly", async () => {
    const { adapter, begin: write, seen } = await begin();
    await write("hello");
    const sink = adapter.sink(first().reply, NO_RIGHT);
    const { id } = await sink.post(draft("grow"), randomUUID(), signal);
    await sink.edit(id, draft("growing"), signal);
    const bytes = new TextEncoder().encode("a,b\n");
    await sink.upload([{ name: "table.csv", contentType: "text/csv", bytes }], undefined, randomUUID(), signal);
    const { id: extra } = await sink.post(draft("too much"), randomUUID(), signal);
    await sink.remove(extra, signal);
    await sink.remove(extra, signal);
    const [grown, uploaded, ...rest] = await seen();
    expect(grown?.text).toContain("growing");
    expect(uploaded?.fileNames).toEqual(["table.csv"]);
    expect(rest).toEqual([]);
  });

  test("the adapter posts once, however often the same nonce is used", async () => {
    const { adapter, begin: write, seen } = await begin();
    await write("hello");
    const sink = adapter.sink(first().reply, NO_RIGHT);
    const nonce = randomUUID();
    const { id } = await sink.post(draft("once"), nonce, signal);
    expect((await sink.post(draft("once"), nonce, signal)).id).toBe(id);
    expect(await seen()).toHaveLength(1);
  });

  test("the adapter accepts the longest message that it promises, and refuses a longer one", async () => {
    const { adapter, begin: write, seen } = await begin();
    await write("hello");
    const sink = adapter.sink(first().reply, NO_RIGHT);
    const { maxLength, lengthOf } = sink.limits;
    const longest = "x".repeat(maxLength);
    expect(lengthOf(longest)).toBe(maxLength);
    await sink.post(draft(longest), randomUUID(), signal);
    expect((await seen())[0]?.text).toContain(longest);
    await expect(sink.post(draft(`${longest}x`), randomUUID(), signal)).rejects.toMatchObject({ kind: "rejected" });
  });

  test("the adapter reports an edit of a removed message as gone", async () => {
    const { adapter, begin: write } = await begin();
    await write("hello");
    const sink = adapter.sink(first().reply, NO_RIGHT);
    const { id } = await sink.post(draft("short-lived"), randomUUID(), signal);
    await sink.remove(id, signal);
    const editing = sink.edit(id, draft("too late"), signal);
    await expect(editing).rejects.toBeInstanceOf(SinkError);
    await expect(editing).rejects.toMatchObject({ kind: "gone" });
  });

  test("the adapter writes nothing once the signal has aborted", async () => {
    const { adapter, begin: write, seen } = await begin();
    await write("hello");
    const reason = new Error("enough");
    const posting = adapter.sink(first().reply, NO_RIGHT).post(draft("never"), randomUUID(), AbortSignal.abort(reason));
    await expect(posting).rejects.toBe(reason);
    expect(await seen()).toEqual([]);
  });
}

function describeLifetime(begin: Begin, events: () => InboundEvent[], first: () => MessageEvent): void {
  test("the adapter turns a pressed button into an action of its turn", async () => {
    const { adapter, begin: write, press, seen } = await begin();
    await write("hello");
    const buttons = [{ action: "stop" as const, turnId: "turn-1", label: "Stop" }];
    const { id } = await adapter
      .sink(first().reply, NO_RIGHT)
      .post(draft("…", { buttons, streaming: true }), randomUUID(), signal);
    expect((await seen())[0]?.buttons).toEqual(["Stop"]);
    await press(id, "Stop");
    const { conversationId } = first();
    expect(events().at(-1)).toMatchObject({ kind: "action", action: "stop", turnId: "turn-1", conversationId });
  });

  test("the adapter shows a wait with Stop before there is text, in the message that becomes the answer", async () => {
    const { adapter, begin: write, seen } = await begin();
    await write("hello");
    const sink = adapter.sink(first().reply, NO_RIGHT);
    // On other platforms, the progress line shows this.
    if (sink.traits?.waits === undefined) return;
    const buttons = [{ action: "stop" as const, turnId: "turn-1", label: "Stop" }];
    const { id } = await sink.post(draft("_Waiting …_", { buttons }), randomUUID(), signal);
    expect((await seen()).map((message) => message.buttons)).toEqual([["Stop"]]);
    await sink.edit(id, draft("One", { source: "One", buttons, streaming: true }), signal);
    expect((await seen()).map((message) => message.buttons)).toEqual([["Stop"]]);
    await sink.edit(id, draft("One."), signal);
    expect(await seen()).toMatchObject([{ text: "One.", buttons: [] }]);
  });

  test("the adapter does not acknowledge a delivery that could not be stored", async () => {
    const { begin: write } = await begin(async () => {
      throw new Error("the disk is full");
    });
    await expect(write("hello")).rejects.toThrow();
    expect(events()).toEqual([]);
  });

  test("the adapter delivers nothing after a pause, and still writes replies", async () => {
    const { adapter, begin: write, seen, goOn } = await begin();
    await write("hello");
    expect(adapter.isConnected()).toBe(true);
    await adapter.pause();
    await goOn("anybody there?").catch(() => undefined);
    expect(events()).toHaveLength(1);
    await adapter.sink(first().reply, NO_RIGHT).post(draft("good night"), randomUUID(), signal);
    expect((await seen()).map((message) => message.text)).toEqual([expect.stringContaining("good night")]);
  });
}
