import { describe, expect, test } from "vitest";
import { startGuild } from "../../support/discord.ts";

/** The test itself checks the violations. */
async function startChannel() {
  const { discord, channel, ada, call } = await startGuild({ allow: "anything" });
  const post = async (json: object, ...files: { name: string; bytes: Uint8Array }[]) => {
    discord.clock.advance(5000);
    const options = files.length === 0 ? {} : { files };
    return String((await call("POST", `/channels/${channel.id}/messages`, json, options)).body["id"]);
  };
  const edit = async (id: string, content: string) => {
    discord.clock.advance(5000);
    return await call("PATCH", `/channels/${channel.id}/messages/${id}`, { content });
  };
  const kinds = () => discord.violations.map(({ kind }) => kind);
  const say = (text: string) => discord.people.say(channel, ada, text);
  return { discord, channel, post, edit, say, kinds };
}

describe("a stale edit", () => {
  test("an edit that shows less of the same text than before is stale", async () => {
    const { edit, post, kinds } = await startChannel();
    const id = await post({ content: "One two three …" });
    await edit(id, "One two three four …");
    expect(kinds()).toEqual([]);
    await edit(id, "One two …");
    expect(kinds()).toEqual(["stale-edit"]);
  });

  test("an edit that removes the cursor at the end of a stream is not a stale edit", async () => {
    const { edit, post, kinds } = await startChannel();
    const id = await post({ content: "```js\nlet a = 1;\n``` ▌" });
    await edit(id, "```js\nlet a = 1;\n```");
    await edit(id, "```js\nlet a = 1;");
    expect(kinds()).toEqual([]);
  });

  test("an edit that starts the answer over is not a stale edit", async () => {
    const { edit, post, kinds } = await startChannel();
    await edit(await post({ content: "The capital is Rome." }), "It is Paris");
    expect(kinds()).toEqual([]);
  });

  test("a full message whose end moves to the next one is not a stale edit, unless it looked like that before", async () => {
    const { edit, post, kinds } = await startChannel();
    const id = await post({ content: "a".repeat(1500) });
    await edit(id, "a".repeat(1990));
    await edit(id, "a".repeat(1700));
    expect(kinds()).toEqual([]);
    await edit(id, "a".repeat(1900));
    await edit(id, "a".repeat(1500));
    expect(kinds()).toEqual(["stale-edit"]);
  });
});

describe("a double post", () => {
  test("a post with the text of another answer to the same message is a double post", async () => {
    const { say, post, kinds } = await startChannel();
    const question = say("question");
    const reply = { content: "answer", message_reference: { message_id: question.id } };
    await post(reply);
    await post({ ...reply, content: "another part" });
    expect(kinds()).toEqual([]);
    await post(reply);
    expect(kinds()).toEqual(["double-post"]);
  });

  test("a post with the text of another message since a user last wrote is a double post", async () => {
    const { say, post, kinds } = await startChannel();
    say("question");
    await post({ content: "I am busy." });
    say("question");
    await post({ content: "I am busy." });
    expect(kinds()).toEqual([]);
    await post({ content: "I am busy." });
    expect(kinds()).toEqual(["double-post"]);
  });

  test("messages that reply to nothing do not count as a double post if their buttons belong to different answers", async () => {
    const { say, post, kinds } = await startChannel();
    say("question");
    const withRetry = (turn: string) => ({
      content: "Rate-limited.",
      components: [{ type: 1, components: [{ type: 2, style: 2, label: "Retry", custom_id: `retry:${turn}` }] }],
    });
    await post(withRetry("one"));
    await post(withRetry("other"));
    expect(kinds()).toEqual([]);
    await post(withRetry("one"));
    expect(kinds()).toEqual(["double-post"]);
  });

  test("a double post is found if its nonce was not enforced", async () => {
    const { say, post, kinds } = await startChannel();
    say("question");
    await post({ content: "answer", nonce: "7" });
    await post({ content: "answer, later", nonce: "7" });
    expect(kinds()).toEqual(["double-post"]);
  });

  test("a message that grows until it equals another answer to the same message is a double post", async () => {
    const { say, post, edit, kinds } = await startChannel();
    const question = say("question");
    const message_reference = { message_id: question.id };
    await post({ content: "The whole answer.", message_reference });
    const second = await post({ content: "The", message_reference });
    await edit(second, "The whole");
    expect(kinds()).toEqual([]);
    await edit(second, "The whole answer.");
    expect(kinds()).toEqual(["double-post"]);
  });

  test("a full part of an answer that repeats itself is not a double post", async () => {
    const { say, post, edit, kinds } = await startChannel();
    say("question");
    await post({ content: "x".repeat(1990) });
    await edit(await post({ content: "x".repeat(1000) }), "x".repeat(1990));
    expect(kinds()).toEqual([]);
  });

  test("a double post has the same text and the same files", async () => {
    const { say, post, kinds } = await startChannel();
    say("draw two");
    const [one, two] = [1, 2].map((byte) => ({ name: "a.png", bytes: new Uint8Array([byte]) }));
    if (one === undefined || two === undefined) throw new Error("There are not two files.");
    await post({ content: "a cat" }, one);
    await post({ content: "a cat" }, two);
    expect(kinds()).toEqual([]);
    await post({ content: "a cat" }, one);
    expect(kinds()).toEqual(["double-post"]);
  });

  test("a post with an enforced nonce is never a double post", async () => {
    const { discord, channel, say, post, kinds } = await startChannel();
    say("question");
    for (let count = 0; count < 2; count++) await post({ content: "answer", nonce: "7", enforce_nonce: true });
    expect(kinds()).toEqual([]);
    expect(discord.messages(channel)).toHaveLength(2);
  });
});

describe("overlapping edits", () => {
  test("two edits of one message overlap if the second starts before the first has its response", async () => {
    const { discord, edit, post, kinds } = await startChannel();
    const id = await post({ content: "a" });
    const other = await post({ content: "b" });
    discord.faults.slow("PATCH /channels/:channel/messages/:message", 50);
    await Promise.all([edit(id, "aa"), edit(other, "bb")]);
    expect(kinds()).toEqual([]);
    await Promise.all([edit(id, "aaa"), edit(id, "aaaa")]);
    expect(kinds()).toEqual(["overlapping-edits"]);
  });
});
