import { describe, expect, test } from "vitest";
import { ada, ben } from "../../lab/support/events.ts";
import type { Author, ReplyAddress } from "../../src/port/events.ts";
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
