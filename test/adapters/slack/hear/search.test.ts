import { describe, expect, test } from "vitest";
import type { Actor } from "../../../../src/port/catalogue.ts";
import { signal, startStage } from "../stage.ts";

async function start(options: Parameters<typeof startStage>[0] = {}) {
  const stage = await startStage(options);
  const { slack, ada, bob, general, adapter } = stage;
  bob.say(general, "the *release* is near");
  const by = await stage.slack.until(() => stage.events.find(({ kind }) => kind === "message") ?? ask(), "a question");
  const search = (words: string, given: Actor = by, cursor?: string) =>
    adapter.search?.({ words, ...(cursor !== undefined && { cursor }) }, given, signal) ?? Promise.reject();
  return { ...stage, by, search };

  function ask(): undefined {
    if (slack.messages(general).length === 1) ada.mention(general, "look");
    return undefined;
  }
}

describe("the search on Slack", () => {
  test("a search finds messages with their channel, author, time and link", async () => {
    const { general, by, search } = await start();
    const { hits, next } = await search("*RELEASE*");
    expect(next).toBeUndefined();
    const place = `slack:${by.reply.workspaceId}:${general.id}`;
    expect(hits).toEqual([
      {
        messageId: expect.stringMatching(new RegExp(`^${place}:\\d+\\.\\d+$`)),
        placeId: place,
        placeName: "#general",
        authorName: "Bob",
        text: "the *release* is near",
        at: expect.any(Number),
        link: expect.stringMatching(new RegExp(`^http\\S+/archives/${general.id}/p\\d+$`)),
      },
    ]);
  });

  test("a search continues on the next page", async () => {
    const { bob, general, by, search } = await start();
    for (let index = 0; index < 21; index++) bob.say(general, `boat ${index}`);
    const first = await search("boat");
    expect(first.hits.map(({ text }) => text)).toHaveLength(20);
    expect((await search("boat", by, first.next)).hits.map(({ text }) => text)).toEqual(["boat 0"]);
  });

  test("a search says that it needs the token of a message", async () => {
    const { by, search } = await start();
    const { actionToken: _token, ...extra } = by.reply.extra ?? {};
    await expect(search("release", { ...by, reply: { ...by.reply, extra } })).rejects.toThrow(
      "Slack lets me search only when you send me a message: mention me, or write to me directly, for example `!search release date`.",
    );
  });

  test("a search a long time after the message asks for a new message", async () => {
    const { slack, search } = await start();
    slack.advance(3_600_000);
    await expect(search("release")).rejects.toThrow("Ask again in a new message.");
  });

  test("a search names the scope that the bot lacks", async () => {
    const { slack, search } = await start();
    slack.workspace.scopes.delete("search:read.public");
    await expect(search("release")).rejects.toThrow("the app needs the scope search:read.public.");
  });

  test("a search by a guest says that Slack offers guests no search", async () => {
    const { ada, search } = await start();
    ada.user.isGuest = true;
    await expect(search("release")).rejects.toThrow("Its search is only for full members");
  });

  test("a search above Slack's limit says when the next one is possible", async () => {
    const { slack, search } = await start();
    slack.failNext("assistant.search.context", { retryAfterS: 30 });
    await expect(search("release")).rejects.toThrow("I've reached Slack's search limit. Try again in 30 s.");
  });
});
