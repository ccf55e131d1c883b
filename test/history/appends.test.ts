import { beforeEach, describe, expect, test } from "vitest";
import type { HistoryEntry } from "../../src/history/record.ts";
import { said, uniqueId } from "../support/history-contract.ts";
import { openHistory } from "../support/history-store.ts";

type Person = NonNullable<HistoryEntry["author"]>;

const { history } = openHistory();
let conversation: string;
beforeEach(() => {
  conversation = uniqueId();
});

describe("an append to the history", () => {
  test("an append in reply to a message of another conversation continues no entry of this conversation", async () => {
    const [elsewhere, here] = [uniqueId(), uniqueId()];
    await history.append(uniqueId(), said(elsewhere, "x"));
    await history.append(conversation, said(here, "y"), [], elsewhere);
    const { entries } = await history.read(conversation, { maxEntries: 5 });
    expect(entries).toEqual([said(here, "y")]);
  });
});

describe("messages of others in the history", () => {
  test("messages of others are stored in order, once, and keep their first position", async () => {
    const [first, second, question, third] = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
    await history.append(uniqueId(), said(third, "elsewhere"));
    await history.setFollowed(conversation, true);
    expect(await history.isNew(conversation)).toBe(true);
    await history.bring(conversation, [said(first, "1"), said(second, "2")], 1);
    expect(await history.isNew(conversation)).toBe(false);
    expect(await history.isFollowed(conversation)).toBe(true);
    await history.append(conversation, said(question, "q"));
    const fourth = uniqueId();
    await history.bring(conversation, [said(second, "2"), said(third, "3"), said(fourth, "4")], 2);
    const { entries } = await history.read(conversation, { maxEntries: 10 });
    expect(entries.map(({ id }) => id)).toEqual([first, second, question, fourth]);
  });

  test("the history stores up to which time it has the messages of others, and a conversation with only that time counts as new", async () => {
    expect(await history.broughtUntil(conversation)).toBeUndefined();
    await history.setFollowed(conversation, true);
    expect(await history.broughtUntil(conversation)).toBeUndefined();
    await history.bring(conversation, [], 7);
    expect(await history.isNew(conversation)).toBe(true);
    expect(await history.broughtUntil(conversation)).toBe(7);
  });

  test("without a stored time, the history has the messages of others up to the conversation's newest entry", async () => {
    const id = uniqueId();
    await history.append(conversation, { ...said(id, "x"), at: 9 });
    expect(await history.broughtUntil(conversation)).toBe(9);
    await history.remove(id);
    expect(await history.broughtUntil(conversation)).toBe(Infinity);
  });

  test("the history does not request messages of others again after they were erased", async () => {
    const before = Date.now();
    const [ada, ben] = ["ada", "ben"].map((id) => ({ platform: "test", id, name: id })) as [Person, Person];
    const [mine, theirs] = [uniqueId(), uniqueId()];
    await history.bring(conversation, [said(mine, "1", ada), said(theirs, "2", ben)], 1);
    await history.forgetConversation(conversation, { platform: ada.platform, id: ada.id });
    expect(await history.broughtUntil(conversation)).toBeGreaterThanOrEqual(before);
    const other = uniqueId();
    await history.bring(other, [said(uniqueId(), "3", ben)], 1);
    await history.forgetAuthor(ben.platform, ben.id);
    expect(await history.broughtUntil(other)).toBeGreaterThanOrEqual(before);
  });

  test("the history reports the beginning of a conversation until it is erased", async () => {
    const ids = [uniqueId(), uniqueId(), uniqueId()];
    await history.bring(
      conversation,
      ids.map((id) => said(id, "x")),
      1,
    );
    expect((await history.readFirst(conversation))?.id).toBe(ids[0]);
    await history.remove(ids[0] ?? "");
    expect(await history.readFirst(conversation)).toBeUndefined();
  });
});
