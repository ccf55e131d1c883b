import { describe, expect, test } from "vitest";
import { shown } from "../../../lab/discord-sim/world.ts";
import { type DiscordOptions, startGuild } from "../../support/discord.ts";

async function startChannel(options: DiscordOptions = {}) {
  const { channel, call, ...scene } = await startGuild(options);
  const post = (json: unknown) => call("POST", `/channels/${channel.id}/messages`, json);
  const edit = (id: unknown, json: unknown) => call("PATCH", `/channels/${channel.id}/messages/${String(id)}`, json);
  return { ...scene, channel, call, post, edit };
}

const code = (answer: { body: Record<string, unknown> }) => answer.body["code"];

describe("messages in the simulator", () => {
  test("a message has at most 2,000 characters, counted as UTF-16 units", async () => {
    const { post } = await startChannel();
    expect((await post({ content: "😀".repeat(1000) })).status).toBe(200);
    expect((await post({ content: `${"😀".repeat(1000)}x` })).status).toBe(400);
    const refused = await post({ content: "x".repeat(2001) });
    expect([refused.status, code(refused)]).toEqual([400, 50035]);
    expect(refused.body["errors"]).toMatchObject({ content: { _errors: [{ code: "BASE_TYPE_MAX_LENGTH" }] } });
  });

  test("an empty message gets the error 50006", async () => {
    const { post, edit } = await startChannel();
    expect(code(await post({ content: " \n " }))).toBe(50006);
    const { body } = await post({ content: " text " });
    expect(body["content"]).toBe("text");
    expect(code(await edit(body["id"], { content: "" }))).toBe(50006);
  });

  test("an unknown message gets the error 10008, and an unknown channel 10003", async () => {
    const { call, channel, edit, ada } = await startChannel();
    expect(code(await edit(ada.id, { content: "x" }))).toBe(10008);
    expect(code(await call("GET", `/channels/${ada.id}`))).toBe(10003);
    expect(code(await call("DELETE", `/channels/${channel.id}/messages/${ada.id}`))).toBe(10008);
  });

  test("a bot cannot edit messages of others", async () => {
    const { discord, channel, ada, edit } = await startChannel({ allow: { "invalid-request": 1 } });
    const theirs = discord.people.say(channel, ada, "mine");
    expect(code(await edit(theirs.id, { content: "yours" }))).toBe(50005);
  });

  test("a post with a known, enforced nonce returns the first message, until the nonce is forgotten", async () => {
    const { discord, channel, post } = await startChannel({ allow: { "double-post": 1 } });
    const first = await post({ content: "one", nonce: "n", enforce_nonce: true });
    const second = await post({ content: "two", nonce: "n", enforce_nonce: true });
    expect(second.body["id"]).toBe(first.body["id"]);
    expect(discord.messages(channel)).toHaveLength(1);
    discord.clock.advance(6 * 60_000);
    expect((await post({ content: "three", nonce: "n", enforce_nonce: true })).body["id"]).not.toBe(first.body["id"]);
  });

  test("the simulator refuses a reply to a deleted message, unless the post allows that", async () => {
    const { discord, channel, ada, post } = await startChannel();
    const gone = discord.people.say(channel, ada, "gone");
    discord.people.delete(gone);
    expect(code(await post({ content: "x", message_reference: { message_id: gone.id } }))).toBe(50035);
    const reference = { message_id: gone.id, fail_if_not_exists: false };
    expect((await post({ content: "x", message_reference: reference })).status).toBe(200);
  });

  test("a message has at most five rows of five buttons, and no id twice", async () => {
    const { post } = await startChannel();
    const button = (id: string) => ({ type: 2, style: 1, label: "Go", custom_id: id });
    const row = (...ids: string[]) => ({ type: 1, components: ids.map(button) });
    expect((await post({ content: "x", components: [row("a", "b", "c", "d", "e")] })).status).toBe(200);
    expect(code(await post({ content: "y", components: [row("a", "b", "c", "d", "e", "f")] }))).toBe(50035);
    expect(code(await post({ content: "z", components: [row("a"), row("a")] }))).toBe(50035);
  });

  test("a message's flags can suppress embeds and show them again, but change no flag that a bot cannot set", async () => {
    const { discord, channel, post, edit } = await startChannel();
    const { body } = await post({ content: "https://example.com", flags: 4 | 64 });
    await edit(body["id"], { content: "other", flags: 0 });
    expect(discord.messages(channel)[0]?.states.map(({ flags }) => flags)).toEqual([4, 0]);
  });

  test("a message keeps the attachments that an edit names", async () => {
    const { discord, channel, call, edit } = await startChannel();
    const files = ["a.txt", "b.txt"].map((name) => ({ name, bytes: Buffer.from(name) }));
    const { body } = await call("POST", `/channels/${channel.id}/messages`, { content: "files" }, { files });
    const [first] = body["attachments"] as { id: string; filename: string; content_type: string }[];
    expect(first).toMatchObject({ filename: "a.txt", content_type: "text/plain; charset=utf-8" });
    await edit(body["id"], { attachments: [{ id: first?.id }] });
    const [message] = discord.messages(channel);
    expect(message === undefined ? [] : shown(message).attachments.map(({ name }) => name)).toEqual(["a.txt"]);
  });

  test("a message with a file above the limit gets the error 40005", async () => {
    const { channel, call } = await startChannel({ rules: { maxFileBytes: 10 } });
    const files = [{ name: "a.bin", bytes: new Uint8Array(11) }];
    const refused = await call("POST", `/channels/${channel.id}/messages`, {}, { files });
    expect([refused.status, code(refused)]).toEqual([413, 40005]);
  });

  test("messages older than an hour accept a limited number of edits", async () => {
    const { discord, post, edit } = await startChannel({ rules: { oldMessageEdits: 1 } });
    const { body } = await post({ content: "old" });
    discord.clock.advance(3_600_000);
    expect((await edit(body["id"], { content: "edited" })).status).toBe(200);
    expect(code(await edit(body["id"], { content: "again" }))).toBe(30046);
  });

  test("a bot lists messages newest first, before and after an id", async () => {
    const { discord, channel, ada, call } = await startChannel();
    const said = ["a", "b", "c"].map((text) => discord.people.say(channel, ada, text));
    const list = async (query: string) => {
      const { body } = await call("GET", `/channels/${channel.id}/messages?${query}`);
      return (body as unknown as { content: string }[]).map(({ content }) => content);
    };
    expect(await list("limit=2")).toEqual(["c", "b"]);
    expect(await list(`after=${said[0]?.id}`)).toEqual(["c", "b"]);
    expect(await list(`before=${said[1]?.id}`)).toEqual(["a"]);
  });

  test("a bot must wait between messages in a channel with slow mode", async () => {
    const { discord, guild, call } = await startChannel();
    const slow = discord.addChannel(guild, "slow", { slowmodeSeconds: 10 });
    await call("POST", `/channels/${slow.id}/messages`, { content: "one" });
    const refused = await call("POST", `/channels/${slow.id}/messages`, { content: "two" });
    expect([refused.status, code(refused), refused.headers.get("retry-after")]).toEqual([429, 20016, "10"]);
  });

  test("a bot cannot send direct messages to a user who accepts no direct messages", async () => {
    const { discord, ada, call } = await startChannel({ allow: { "invalid-request": 1 } });
    ada.acceptsDms = false;
    const { body } = await call("POST", "/users/@me/channels", { recipient_id: ada.id });
    expect(code(await call("POST", `/channels/${String(body["id"])}/messages`, { content: "psst" }))).toBe(50007);
    expect(discord.openDm(ada).id).toBe(body["id"]);
  });

  test("a typing indicator announces a message", async () => {
    const { discord, channel, call } = await startChannel();
    expect((await call("POST", `/channels/${channel.id}/typing`)).status).toBe(204);
    expect(discord.typing).toMatchObject([{ channelId: channel.id }]);
  });
});
