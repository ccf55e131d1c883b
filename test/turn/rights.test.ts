import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, message } from "../../lab/support/events.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { Author, ReplyAddress } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { canManage, maySee } from "../../src/turn/rights.ts";

const HERE: ReplyAddress = { platform: "test", channelId: "general" };
const boss: Author = { id: "boss", name: "Boss", isModerator: true };
const made = (reply: Partial<ReplyAddress> = {}, author = ada) => {
  return { author, conversationId: "test:one:a", reply: { ...HERE, ...reply } };
};
const by = (author: Author, reply: Partial<ReplyAddress> = {}) => ({ author, reply: { ...HERE, ...reply } });

describe("the visibility of an answer or an image", () => {
  test("everyone in an answer's channel can see the answer, and its asker can see it anywhere", () => {
    expect(maySee(by(ben), made())).toBe(true);
    expect(maySee(by(ben, { channelId: "elsewhere" }), made())).toBe(false);
    expect(maySee(by(ben, { workspaceId: "one" }), made({ workspaceId: "other" }))).toBe(false);
    expect(maySee(by(ben, { platform: "another" }), made())).toBe(false);
    expect(maySee(by(ada, { channelId: "elsewhere" }), made())).toBe(true);
    expect(maySee(by(ada, { platform: "another" }), made())).toBe(false);
  });

  test("an answer in a thread is not visible from another thread, and a thread can be named alone", () => {
    expect(maySee(by(ben, { threadId: "1" }), made({ threadId: "2" }))).toBe(false);
    expect(maySee(by(ben, { threadId: "1" }), made({ threadId: "1" }))).toBe(true);
    expect(maySee(by(ben, { threadId: "1" }), made())).toBe(true);
    expect(maySee(by(ben, { channelId: "1" }), made({ threadId: "1" }))).toBe(true);
    expect(maySee(by(ben, { threadId: "1" }), made({ channelId: "1" }))).toBe(true);
  });

  test("only its asker can see a private answer", () => {
    expect(maySee(by(boss), made({ visibleTo: "ada" }))).toBe(false);
    expect(canManage(by(boss), made({ visibleTo: "ada" }))).toBe(false);
    expect(canManage(by(ada), made({ visibleTo: "ada" }))).toBe(true);
  });

  test("the asker and moderators of its channel can act on an answer", () => {
    expect(canManage(by(ada), made())).toBe(true);
    expect(canManage(by(ben), made())).toBe(false);
    expect(canManage(by(boss), made())).toBe(true);
    expect(canManage(by(boss, { channelId: "elsewhere" }), made())).toBe(false);
  });
});

describe("a forged button of an answer", () => {
  const elsewhere = { ...HERE, channelId: "elsewhere" };

  test("a forged Stop or Retry does nothing for a moderator of another channel", async () => {
    const { handle, channel, texts } = startEngine({
      scripts: [[new GatewayError("interrupted", "cut")], ["Good."]],
    });
    const question = await handle(message("Hello"));
    await handle({ ...action("retry", toTurnId(question.key), { author: boss }), reply: elsewhere });
    expect(texts().at(-1)).toMatch(/^Only the person who asked/);
    expect(channel[0]?.draft.buttons[0]?.action).toBe("retry");
    await handle(action("retry", toTurnId(question.key), { author: boss }));
    expect(texts()[0]).toBe("Good.");
  });

  test("a forged rating from another channel does not count", async () => {
    const { handle, records } = startEngine();
    const question = await handle(message("Hello"));
    await handle({ ...action("good", toTurnId(question.key), { author: ben }), reply: elsewhere });
    expect(await records.readFeedback("test", "ben")).toEqual([]);
    await handle(action("good", toTurnId(question.key), { author: ben }));
    expect(await records.readFeedback("test", "ben")).toHaveLength(1);
  });
});
