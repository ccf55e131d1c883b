import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { Author, ReplyAddress } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { mayPress, maySee } from "../../src/turn/rights.ts";
import { startEngine } from "../support/engine.ts";
import { action, ada, ben, message } from "../support/events.ts";

const HERE: ReplyAddress = { platform: "test", channelId: "general" };
const boss: Author = { id: "boss", name: "Boss", isModerator: true };
const made = (reply: Partial<ReplyAddress> = {}, author = ada) => {
  return { author, conversationId: "test:one:a", reply: { ...HERE, ...reply } };
};
const by = (author: Author, reply: Partial<ReplyAddress> = {}) => ({ author, reply: { ...HERE, ...reply } });

describe("an answer or a picture", () => {
  test("is seen by everybody in its place, and by its person anywhere", () => {
    expect(maySee(by(ben), made())).toBe(true);
    expect(maySee(by(ben, { channelId: "elsewhere" }), made())).toBe(false);
    expect(maySee(by(ben, { workspaceId: "one" }), made({ workspaceId: "other" }))).toBe(false);
    expect(maySee(by(ben, { platform: "another" }), made())).toBe(false);
    expect(maySee(by(ada, { channelId: "elsewhere" }), made())).toBe(true);
    expect(maySee(by(ada, { platform: "another" }), made())).toBe(false);
  });

  test("in a thread is not seen from another thread, and a thread may be named alone", () => {
    expect(maySee(by(ben, { threadId: "1" }), made({ threadId: "2" }))).toBe(false);
    expect(maySee(by(ben, { threadId: "1" }), made({ threadId: "1" }))).toBe(true);
    expect(maySee(by(ben, { threadId: "1" }), made())).toBe(true);
    expect(maySee(by(ben, { channelId: "1" }), made({ threadId: "1" }))).toBe(true);
    expect(maySee(by(ben, { threadId: "1" }), made({ channelId: "1" }))).toBe(true);
  });

  test("that is private is seen by its person alone", () => {
    expect(maySee(by(boss), made({ visibleTo: "ada" }))).toBe(false);
    expect(mayPress(by(boss), made({ visibleTo: "ada" }))).toBe(false);
    expect(mayPress(by(ada), made({ visibleTo: "ada" }))).toBe(true);
  });

  test("is acted on by who asked for it, and by moderators of its place", () => {
    expect(mayPress(by(ada), made())).toBe(true);
    expect(mayPress(by(ben), made())).toBe(false);
    expect(mayPress(by(boss), made())).toBe(true);
    expect(mayPress(by(boss, { channelId: "elsewhere" }), made())).toBe(false);
  });

  test("of a former id is theirs within the conversations that are", () => {
    const person = (within?: string): Author => {
      return { id: "new", name: "Ada", former: { id: "ada", ...(within !== undefined && { within }) } };
    };
    expect(mayPress(by(person()), made())).toBe(true);
    expect(mayPress(by(person("test:one:")), made())).toBe(true);
    expect(mayPress(by(person("test:other:")), made())).toBe(false);
  });
});

describe("a button of an answer that is forged", () => {
  const elsewhere = { ...HERE, channelId: "elsewhere" };

  test("to stop or retry it does nothing for a moderator of another place", async () => {
    const { accept, idle, channel, texts } = startEngine({
      scripts: [[new GatewayError("interrupted", "cut")], ["Good."]],
    });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept({ ...action("retry", toTurnId(question.key), { author: boss }), reply: elsewhere });
    await idle();
    expect(texts().at(-1)).toMatch(/^Only the person who asked/);
    expect(channel[0]?.draft.buttons[0]?.action).toBe("retry");
    await accept(action("retry", toTurnId(question.key), { author: boss }));
    await idle();
    expect(texts()[0]).toBe("Good.");
  });

  test("to judge it is not counted from another place", async () => {
    const { accept, idle, records } = startEngine();
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept({ ...action("good", toTurnId(question.key), { author: ben }), reply: elsewhere });
    await idle();
    expect(await records.readFeedback("test", "ben")).toEqual([]);
    await accept(action("good", toTurnId(question.key), { author: ben }));
    await idle();
    expect(await records.readFeedback("test", "ben")).toHaveLength(1);
  });
});
