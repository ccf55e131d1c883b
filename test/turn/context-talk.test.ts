import { describe, expect, test } from "vitest";
import { ben, message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import type { EarlierMessage } from "../../src/port/events.ts";
import { createReadChannelTalk } from "../../src/turn/context.ts";
import { toEntry } from "../../src/turn/questions.ts";
import { newRecord } from "../../src/turn/record.ts";

const never = new AbortController().signal;
const said = (id: string, more: Partial<EarlierMessage> = {}): EarlierMessage => {
  return { messageId: id, author: ben, text: id, attachments: [], at: 5, ...more };
};

function setUp(found: EarlierMessage[] | Error) {
  const asked: Array<readonly string[]> = [];
  const { log, lines } = recordingLog();
  const adapter = {
    async readChannel(_: unknown, ids: readonly string[]) {
      asked.push(ids);
      if (found instanceof Error) throw found;
      return found;
    },
  };
  // The post "reply" belongs to the turn "answer".
  const stored = new Map([
    ["reply", { conversationId: message("any").conversationId, entryId: "answer" }],
    ["reply elsewhere", { conversationId: "test:elsewhere", entryId: "another answer" }],
    ["in another branch", { conversationId: message("any").conversationId, entryId: "in another branch" }],
  ]);
  const find = async (id: string) => stored.get(id);
  return { read: createReadChannelTalk({ history: { find }, adapterOf: () => adapter, log }), asked, lines };
}

describe("the recent messages of a channel", () => {
  test("the bot reads channel messages around the questions, without those that the conversation has", async () => {
    const [first, question] = [message("first"), message("question")];
    const { read, asked } = setUp([
      said("new"),
      said(first.messageId),
      said("reply", { by: "bot" }),
      said(question.messageId),
    ]);
    const answer = { id: "answer", at: 1, messages: [{ role: "assistant" as const, content: "!" }] };
    const entries = [toEntry(first), answer, toEntry(question)];
    const talk = await read(newRecord([question], [question]), { entries, first: entries[0] }, 15, never);
    expect(talk).toMatchObject([{ id: "new", isEarlier: true }]);
    expect(asked).toEqual([[question.messageId, first.messageId]]);
  });

  test("channel messages exclude other branches of the conversation and include other conversations", async () => {
    const question = message("question");
    const { read } = setUp([
      said("in another branch"),
      said("reply", { by: "bot" }),
      said("reply elsewhere"),
      said("new"),
    ]);
    const branch = { entries: [toEntry(question)], first: undefined };
    const talk = await read(newRecord([question], [question]), branch, 15, never);
    expect(talk.map(({ id }) => id)).toEqual(["reply elsewhere", "new"]);
  });

  test("the bot does not truncate a long channel message within a flag emoji", async () => {
    const question = message("question");
    const { read } = setUp([said("long", { text: `x${"🇩🇪".repeat(2_000)}` })]);
    const talk = await read(newRecord([question], [question]), { entries: [], first: undefined }, 15, never);
    const content = `x${"🇩🇪".repeat(999)}\n[… 4004 characters left out …]`;
    expect(talk).toMatchObject([{ messages: [{ content }] }]);
  });

  test("channel messages do not start with a thread that others started", async () => {
    const question = message("question");
    const { read, asked } = setUp([]);
    const first = { ...toEntry(message("of people")), isEarlier: true };
    await read(newRecord([question], [question]), { entries: [], first }, 15, never);
    expect(asked).toEqual([[question.messageId]]);
  });

  test("the bot reads no channel messages for a private question, or if the setting is 0", async () => {
    const { read, asked } = setUp([said("new")]);
    const question = message("question");
    const secret = message("secret", { reply: { platform: "test", channelId: "general", visibleTo: "ada" } });
    const branch = { entries: [], first: undefined };
    expect(await read(newRecord([question], [question]), branch, 0, never)).toEqual([]);
    expect(await read(newRecord([secret], [secret]), branch, 15, never)).toEqual([]);
    expect(asked).toEqual([]);
  });

  test("an answer does not wait for unreadable channel messages", async () => {
    const { read, lines } = setUp(new Error("not_in_channel"));
    const question = message("canary");
    expect(await read(newRecord([question], [question]), { entries: [], first: undefined }, 15, never)).toEqual([]);
    expect(lines).toMatchObject([{ level: 40 }]);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });
});
