import { describe, expect, test } from "vitest";
import { INTENTS } from "../../../lab/discord-sim/sessions.ts";
import { shown } from "../../../lab/discord-sim/world.ts";
import { startGuild } from "../../support/discord.ts";
import { identify } from "../../support/discord-gateway.ts";

async function startThreads(...[options]: Parameters<typeof startGuild>) {
  const scene = await startGuild(options);
  const post = (to: { id: string }, content: string) => scene.call("POST", `/channels/${to.id}/messages`, { content });
  return { ...scene, post };
}

const code = (answer: { body: Record<string, unknown> }) => answer.body["code"];

describe("threads in the simulator", () => {
  test("a thread on a message has the message's id, starts with a pointer to the message, and can be opened once", async () => {
    const { discord, channel, ada, call } = await startGuild();
    const said = discord.people.say(channel, ada, "question");
    const path = `/channels/${channel.id}/messages/${said.id}/threads`;
    const opened = await call("POST", path, { name: "answer", auto_archive_duration: 60 });
    expect([opened.status, opened.body["id"], opened.body["type"]]).toEqual([201, said.id, 11]);
    expect(code(await call("POST", path, { name: "again" }))).toBe(160004);
    const { body } = await call("GET", `/channels/${said.id}/messages`);
    expect(body).toMatchObject([{ type: 21, referenced_message: { id: said.id } }]);
  });

  test("a thread needs a name of at most 100 characters, and a channel that allows threads", async () => {
    const { discord, guild, channel, ada, call } = await startGuild();
    const said = discord.people.say(channel, ada, "question");
    const name = "x".repeat(101);
    expect(code(await call("POST", `/channels/${channel.id}/messages/${said.id}/threads`, { name }))).toBe(50035);
    const post = discord.people.postInForum(discord.addChannel(guild, "forum", { kind: "forum" }), ada, "t", "first");
    expect(code(await call("POST", `/channels/${post.id}/messages/${post.id}/threads`, { name: "x" }))).toBe(50024);
  });

  test("the number of open threads is limited", async () => {
    const { channel, call } = await startGuild({ rules: { maxActiveThreads: 1 } });
    await call("POST", `/channels/${channel.id}/threads`, { name: "one", type: 11 });
    expect(code(await call("POST", `/channels/${channel.id}/threads`, { name: "two", type: 11 }))).toBe(160006);
  });

  test("an archived thread accepts no edits, and a post reopens it", async () => {
    const { discord, channel, ada, call, post } = await startThreads();
    const thread = discord.people.openThread(channel, ada, "talk");
    const { body } = await post(thread, "hello");
    discord.people.setThread(thread, { isArchived: true });
    const path = `/channels/${thread.id}/messages/${String(body["id"])}`;
    expect(code(await call("PATCH", path, { content: "hello!" }))).toBe(50083);
    expect((await post(thread, "again")).status).toBe(200);
    expect((await call("PATCH", path, { content: "hello!" })).status).toBe(200);
  });

  test("a locked thread accepts nothing from users who cannot manage it", async () => {
    const { discord, channel, ada, post } = await startThreads();
    const thread = discord.people.openThread(channel, ada, "talk");
    discord.people.setThread(thread, { isLocked: true });
    expect(code(await post(thread, "hello"))).toBe(160005);
    discord.people.setThread(thread, { isArchived: true });
    expect(code(await post(thread, "hello"))).toBe(50083);
    expect(() => discord.people.say(thread, ada, "hello")).toThrow("locked");
  });

  test("a manager can open a thread that is locked and archived", async () => {
    const { discord, channel, ada, call } = await startGuild({ bot: ["ManageThreads"] });
    const thread = discord.people.openThread(channel, ada, "talk");
    discord.people.setThread(thread, { isLocked: true, isArchived: true });
    const change = { archived: false, locked: false };
    expect((await call("PATCH", `/channels/${thread.id}`, change)).body).toMatchObject({
      thread_metadata: change,
    });
  });

  test("a private thread is hidden from the bot until it is added or mentioned", async () => {
    const { discord, channel, ada, call } = await startGuild({ allow: { "invalid-request": 1 } });
    const thread = discord.people.openThread(channel, ada, "secret", { isPrivate: true });
    expect(code(await call("GET", `/channels/${thread.id}`))).toBe(50001);
    discord.people.say(thread, ada, "come in", { mentionBot: true });
    expect((await call("GET", `/channels/${thread.id}`)).body).toMatchObject({ type: 12, member: { id: thread.id } });
  });

  test("a thread that the bot is added to appears on the gateway before its messages", async () => {
    const { discord, channel, ada } = await startGuild();
    const { gateway } = await identify(discord, { intents: INTENTS.guilds | INTENTS.guildMessages });
    const added = discord.people.openThread(channel, ada, "added", { isPrivate: true });
    discord.people.say(added, ada, "between us");
    discord.people.addToThread(added, discord.bot);
    const first = await gateway.next(({ t }) => t?.startsWith("THREAD_") === true);
    expect([first.t, first.d["id"]]).toEqual(["THREAD_CREATE", added.id]);
    const mentioned = discord.people.openThread(channel, ada, "mentioned", { isPrivate: true });
    const said = discord.people.say(mentioned, ada, "come in", { mentionBot: true });
    const second = await gateway.next(() => true);
    expect([second.t, second.d["id"]]).toEqual(["THREAD_CREATE", mentioned.id]);
    expect((await gateway.next(() => true)).d["id"]).toBe(said.id);
  });

  test("a thread in a forum starts with a message that has its id", async () => {
    const { discord, guild, ada, call, post } = await startThreads({ allow: "anything" });
    const forum = discord.addChannel(guild, "help", { kind: "forum" });
    const thread = discord.people.postInForum(forum, ada, "title", "how?", { mentionBot: true });
    expect(discord.messages(thread)[0]?.id).toBe(thread.id);
    expect(code(await post(forum, "x"))).toBe(50008);
    const made = await call("POST", `/channels/${forum.id}/threads`, { name: "mine", message: { content: "so" } });
    expect(made.body["message"]).toMatchObject({ id: made.body["id"], content: "so" });
  });

  test("a bot can list active and archived threads", async () => {
    const { discord, guild, channel, ada, call } = await startGuild();
    const open = discord.people.openThread(channel, ada, "open");
    const shut = discord.people.openThread(channel, ada, "shut");
    discord.people.setThread(shut, { isArchived: true });
    const names = ({ body }: { body: Record<string, unknown> }) =>
      (body["threads"] as { name: string }[]).map(({ name }) => name);
    expect(names(await call("GET", `/guilds/${guild.id}/threads/active`))).toEqual([open.name]);
    expect(names(await call("GET", `/channels/${channel.id}/threads/archived/public`))).toEqual([shut.name]);
  });

  test("writing in threads needs its own permission", async () => {
    const { discord, guild, channel, ada, post } = await startThreads({ allow: { "invalid-request": 1 } });
    const thread = discord.people.openThread(channel, ada, "talk");
    discord.overwrite(channel, guild.id, { deny: ["SendMessages"] });
    expect((await post(thread, "hello")).status).toBe(200);
    discord.overwrite(channel, guild.id, { deny: ["SendMessagesInThreads"] });
    expect(code(await post(thread, "more"))).toBe(50013);
    expect(discord.messages(thread).map((message) => shown(message).content)).toEqual(["hello"]);
  });
});
