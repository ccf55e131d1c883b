import { beforeEach, describe, expect, test } from "vitest";
import { answered, said, uniqueId } from "../support/history-contract.ts";
import { openHistory } from "../support/history-store.ts";

const { database, history } = openHistory();
let conversation: string;
beforeEach(() => {
  conversation = uniqueId();
});

const storedIn = (conversationId: string) =>
  database
    .prepare("SELECT value FROM keyv WHERE key LIKE ? ORDER BY key")
    .all(`%:e:${encodeURIComponent(conversationId).replaceAll("%", "\\%")}:%`.replaceAll("\\%", "_"))
    .map(({ value }) => String(value));

describe("an append", () => {
  test("an append of an answer right behind its question stores nothing more than one without it", async () => {
    const [question, answer] = [uniqueId(), uniqueId()];
    await history.append(conversation, said(question, "q"));
    await history.append(conversation, answered(answer, "a"), [], question);
    expect(storedIn(conversation)).toHaveLength(2);
    expect(storedIn(conversation).join()).not.toContain("after");
  });

  test("an append of an answer further on stores where its question is", async () => {
    const [question, answer] = [uniqueId(), uniqueId()];
    await history.append(conversation, said(question, "q"));
    await history.append(conversation, said(uniqueId(), "in between"));
    await history.append(conversation, answered(answer, "a"), [], question);
    expect(storedIn(conversation).at(-1)).toContain('"after":');
  });

  test("an append to a message of another conversation continues nothing of this one", async () => {
    const [elsewhere, here] = [uniqueId(), uniqueId()];
    await history.append(uniqueId(), said(elsewhere, "x"));
    await history.append(conversation, said(here, "y"), [], elsewhere);
    const { entries } = await history.read(conversation, { maxEntries: 5 });
    expect(entries).toEqual([said(here, "y")]);
  });
});

describe("a beginning", () => {
  test("a beginning is what comes before everything else, in order and once", async () => {
    const [first, second, question] = [uniqueId(), uniqueId(), uniqueId()];
    await history.setFollowed(conversation, true);
    expect(await history.isNew(conversation)).toBe(true);
    await history.begin(conversation, [said(first, "1"), said(second, "2")]);
    expect(await history.isNew(conversation)).toBe(false);
    expect(await history.isFollowed(conversation)).toBe(true);
    await history.append(conversation, said(question, "q"));
    await history.begin(conversation, [said(uniqueId(), "too late")]);
    const { entries } = await history.read(conversation, { maxEntries: 10 });
    expect(entries.map(({ id }) => id)).toEqual([first, second, question]);
  });

  test("a beginning leaves a message where it was stored before", async () => {
    const [known, fresh] = [uniqueId(), uniqueId()];
    const other = uniqueId();
    await history.append(other, said(known, "there"));
    await history.begin(conversation, [said(known, "here"), said(fresh, "fresh")]);
    expect(await history.find(known)).toEqual({ conversationId: other, entryId: known });
    const { entries } = await history.read(conversation, { maxEntries: 10 });
    expect(entries.map(({ id }) => id)).toEqual([fresh]);
  });

  test("a beginning of nothing leaves a conversation new", async () => {
    await history.begin(conversation, []);
    expect(await history.isNew(conversation)).toBe(true);
  });
});
