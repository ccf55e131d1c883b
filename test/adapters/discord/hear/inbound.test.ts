import { describe, expect, test } from "vitest";
import { timeOf } from "../../../../adapters/discord/ids.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { botMessage, draft, signal, startAdapter, startStage } from "../stage.ts";

describe("messages in a server channel", () => {
  test("a mention in a channel starts a conversation", async () => {
    const { discord, guild, channel, ada, message } = await startStage();
    const said = discord.people.say(channel, ada, "what now?", { mentionBot: true });
    expect(await message(0)).toEqual({
      kind: "message",
      key: `discord:${said.id}`,
      messageId: `discord:${channel.id}:${said.id}`,
      conversationId: `discord:${channel.id}:${said.id}`,
      author: { id: ada.id, name: "ada", mayConfigure: false },
      reply: {
        platform: "discord",
        channelId: channel.id,
        workspaceId: guild.id,
        replyToId: `discord:${channel.id}:${said.id}`,
        extra: { root: said.id },
      },
      at: timeOf(said.id),
      text: "what now?",
      attachments: [],
      addressed: "bot",
    });
  });

  test("a message shows whether its author manages the channel, by a role or by the channel's overwrites", async () => {
    const { discord, guild, channel, ada, bob, message } = await startStage();
    discord.giveRole(guild, ada, discord.addRole(guild, "managers", ["ManageChannels"]));
    for (const person of [ada, bob]) discord.people.say(channel, person, "!model x", { mentionBot: true });
    expect(await message(0)).toMatchObject({ author: { id: ada.id, mayConfigure: true } });
    expect(await message(1)).toMatchObject({ author: { id: bob.id, mayConfigure: false } });
    discord.overwrite(channel, bob.id, { allow: ["ManageChannels"] });
    discord.overwrite(channel, ada.id, { deny: ["ManageChannels"] });
    for (const person of [ada, bob]) discord.people.say(channel, person, "!model x", { mentionBot: true });
    expect(await message(2)).toMatchObject({ author: { id: ada.id, mayConfigure: false } });
    expect(await message(3)).toMatchObject({ author: { id: bob.id, mayConfigure: true } });
  });

  test("a mention of the bot's own role is a mention of the bot", async () => {
    const { discord, guild, channel, ada, message } = await startStage();
    const role = [...guild.roles.values()].find(({ botId }) => botId === discord.bot.id);
    discord.people.say(channel, ada, `<@&${role?.id}> hello`);
    // Users need the permission to mention everyone to notify a managed role. For everyone else, Discord notifies
    // no one but still lists the role in the message.
    expect(await message(0)).toMatchObject({ text: "hello", addressed: "bot" });
  });

  test("a reply to the bot arrives with or without a ping, and names the message it replies to", async () => {
    const { discord, channel, ada, bob, message, answer } = await startStage();
    discord.people.say(channel, ada, "one", { mentionBot: true });
    const replyTo = await answer(0, "answer");
    discord.people.say(channel, ada, "go on", { replyTo, pings: true });
    discord.people.say(channel, bob, "go on", { replyTo, pings: false });
    for (const index of [1, 2]) {
      expect(await message(index)).toMatchObject({
        text: "go on",
        addressed: "bot",
        inReplyTo: `discord:${channel.id}:${replyTo.id}`,
      });
    }
  });

  test("a question about another user's message quotes that message", async () => {
    const { discord, channel, ada, bob, message } = await startStage();
    const bytes = new TextEncoder().encode("x");
    const said = discord.people.say(channel, bob, "E = mc²\nor so", { attachments: [{ name: "a.txt", bytes }] });
    discord.people.say(channel, ada, "what does that mean?", { mentionBot: true, replyTo: said });
    const event = await message(0);
    expect(event.text).toBe("In reply to bob:\n> E = mc²\n> or so\n\nwhat does that mean?");
    expect(event.attachments).toMatchObject([{ name: "a.txt" }]);
  });

  test("the bot ignores messages between users in a channel", async () => {
    const { discord, guild, channel, ada, bob, events, heard } = await startStage();
    const other = discord.addBot("other", guild);
    const said = discord.people.say(channel, ada, "hello all");
    discord.people.say(channel, ada, "@everyone @here look");
    discord.people.say(channel, bob, `<@${ada.id}> hi`, { replyTo: said });
    discord.people.say(channel, bob, "no mention", { replyTo: said });
    discord.people.say(channel, other, "bots", { mentionBot: true });
    discord.people.sayAsWebhook(channel, "hook", `<@${discord.bot.id}> hi`);
    discord.people.say(channel, bob, "joined", { mentionBot: true, type: 7 });
    discord.people.say(channel, bob, `\`<@${discord.bot.id}>\``);
    await heard(channel, ada);
    expect(events).toEqual([]);
  });

  test("a reply to the bot that starts with another user's name is for that user", async () => {
    const { discord, channel, ada, bob, message, answer } = await startStage();
    discord.people.say(channel, ada, "one", { mentionBot: true });
    const replyTo = await answer(0, "answer");
    discord.people.say(channel, ada, `<@${bob.id}> look at this`, { replyTo, pings: false });
    expect(await message(1)).toMatchObject({ addressed: "other", text: "@bob look at this" });
  });

  test("a mention arrives from every channel that the bot can read, and from no other", async () => {
    const { discord, guild, channel, ada, events, heard } = await startStage();
    const hidden = discord.addChannel(guild, "hidden");
    discord.overwrite(hidden, discord.bot.id, { deny: ["ViewChannel"] });
    discord.people.say(hidden, ada, "psst", { mentionBot: true });
    await heard(channel, ada);
    expect(events).toEqual([]);
  });
});

describe("replies", () => {
  test("a reply names the question that a thread was opened from", async () => {
    const { discord, channel, ada, bob, message } = await startStage({ threads: "on" });
    const asked = discord.people.say(channel, ada, "first", { mentionBot: true });
    expect((await message(0)).conversationId).toBe(`discord:${asked.id}`);
    discord.people.say(channel, bob, "me too", { replyTo: asked, mentionBot: true });
    expect(await message(1)).toMatchObject({
      inReplyTo: `discord:${channel.id}:${asked.id}`,
      messageId: expect.stringContaining(channel.id),
    });
  });

  test("a reply in a thread continues the thread, which is one conversation", async () => {
    const { discord, channel, ada, bob, message, answer } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.say(thread, ada, "first", { mentionBot: true });
    discord.people.say(thread, bob, "go on", { replyTo: await answer(0, "one"), pings: false });
    const event = await message(1);
    expect(event).toMatchObject({ addressed: "bot", conversationId: `discord:${thread.id}` });
    expect(event.inReplyTo).toBeUndefined();
  });

  test("a reply that asks for an image includes the image it replies to", async () => {
    const { discord, adapter, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "imagine a cat", { mentionBot: true });
    const picture = { name: "a-cat.png", contentType: "image/png", bytes: new Uint8Array([1]) };
    await adapter.sink((await message(0)).reply, NO_RIGHT).upload([picture], undefined, "n", signal);
    const replyTo = botMessage(discord, channel);
    for (const text of ["imagine it at night", "is it asleep?"]) discord.people.say(channel, ada, text, { replyTo });
    expect(await message(1)).toMatchObject({ text: "imagine it at night", attachments: [{ name: "a-cat.png" }] });
    expect(await message(2)).toMatchObject({ text: "is it asleep?", attachments: [] });
  });

  test("a reply in a thread quotes the beginning of its message, and includes its images", async () => {
    const { discord, adapter, channel, ada, message, answer } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    const attachments = [{ name: "cat.png", bytes: new Uint8Array([1]) }];
    const asked = discord.people.say(thread, ada, "is this a cat?", { mentionBot: true, attachments });
    const answered = await answer(0, `A cat. ${"It purrs. ".repeat(50)}`);
    discord.people.say(thread, ada, "are you sure?", { replyTo: answered });
    expect((await message(1)).text).toMatch(/^In reply to your message:\n> A cat\. [^\n]{290,300}…\n\nare you sure\?$/);
    discord.people.say(thread, ada, "and its name?", { replyTo: asked });
    expect(await message(2)).toMatchObject({
      text: "In reply to my earlier message:\n> is this a cat?\n\nand its name?",
      attachments: [{ name: "cat.png" }],
    });
    discord.people.say(thread, ada, "!help", { replyTo: answered });
    expect((await message(3)).text).toBe("!help");
    discord.people.say(thread, ada, "imagine a dog like this", { replyTo: asked });
    expect(await message(4)).toMatchObject({ text: "imagine a dog like this", attachments: [{ name: "cat.png" }] });
    const picture = { name: "dog.png", contentType: "image/png", bytes: new Uint8Array([1]) };
    const { reply } = await message(0);
    await adapter.sink(reply, NO_RIGHT).upload([picture], draft("drawn from your words"), "n:2", signal);
    const drawn = botMessage(discord, thread, (one) => one !== answered);
    discord.people.say(thread, ada, "now at night", { replyTo: drawn });
    expect(await message(5)).toMatchObject({ text: "now at night", attachments: [{ name: "dog.png" }] });
  });
});

describe("forwarded and removed messages", () => {
  test("a forwarded message is quoted with its files, and with the names of the users it mentions", async () => {
    const { discord, channel, ada, bob, message } = await startStage();
    const attachments = [{ name: "größe 1.png", bytes: new Uint8Array([1]) }];
    const said = discord.people.say(channel, bob, `ask <@${bob.id}> in <#${channel.id}>`, { attachments });
    discord.people.forward(said, discord.openDm(ada), ada);
    const event = await message(0);
    expect(event.text).toBe("Forwarded:\n> ask @bob in #general");
    expect(event.attachments).toMatchObject([{ name: "größe 1.png" }]);
  });

  test("messages deleted in bulk are deleted one by one", async () => {
    const { discord, channel, ada, event } = await startStage();
    const said = ["one", "two"].map((text) => discord.people.say(channel, ada, text, { mentionBot: true }));
    await Promise.all([event(0), event(1)]);
    discord.people.deleteAll(channel, said);
    expect([await event(2), await event(3)]).toMatchObject(
      said.map(({ id }) => ({ kind: "deleted", messageId: `discord:${channel.id}:${id}` })),
    );
  });
});

describe("messages in a thread", () => {
  test("every message in a thread arrives, and shows whether it addresses the bot", async () => {
    const { discord, guild, channel, ada, bob, message } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    const first = discord.people.say(thread, ada, "hello", { mentionBot: true });
    discord.people.say(thread, ada, "and more");
    discord.people.say(thread, ada, `<@${bob.id}> and you?`);
    discord.people.say(thread, bob, "yes", { replyTo: first });
    const said = await Promise.all([0, 1, 2, 3].map(message));
    expect(said.map(({ addressed }) => addressed)).toEqual(["bot", "open", "other", "other"]);
    expect(new Set(said.map(({ conversationId }) => conversationId))).toEqual(new Set([`discord:${thread.id}`]));
    expect(said[0]?.reply).toEqual({
      platform: "discord",
      channelId: channel.id,
      threadId: thread.id,
      workspaceId: guild.id,
      replyToId: `discord:${thread.id}:${first.id}`,
    });
  });

  test("a post in a forum arrives as a thread", async () => {
    const { discord, guild, ada, message } = await startStage();
    const forum = discord.addChannel(guild, "forum", { kind: "forum" });
    const post = discord.people.postInForum(forum, ada, "Title", "please help", { mentionBot: true });
    expect(await message(0)).toMatchObject({
      conversationId: `discord:${post.id}`,
      addressed: "bot",
      text: "please help",
    });
  });
});

describe("a thread that the gateway did not list", () => {
  test("a message in a thread that the gateway did not list names its server", async () => {
    const { discord, guild, channel, ada, message } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.gateway.sessions[0]?.dispatch("THREAD_DELETE", { id: thread.id, guild_id: guild.id, type: 11 });
    discord.people.say(thread, ada, "hello", { mentionBot: true });
    expect(await message(0)).toMatchObject({
      conversationId: `discord:${thread.id}`,
      reply: { channelId: thread.id, workspaceId: guild.id },
    });
  });
});

describe("direct messages", () => {
  test("the bot recognises a direct message even if a proxy sends null for missing fields", async () => {
    const { discord, ada, message } = await startStage();
    const { id } = discord.openDm(ada);
    const nulls = { guild_id: null, webhook_id: null, member: null };
    const attachment = { id: "1", filename: "a.bin", size: 1, url: "https://cdn.discordapp.com/a", title: null };
    discord.gateway.sessions[0]?.dispatch("MESSAGE_CREATE", {
      ...nulls,
      id: "900000000000000001",
      channel_id: id,
      author: { id: ada.id, username: "ada" },
      content: "hello",
      attachments: [{ ...attachment, content_type: null }],
    });
    expect(await message(0)).toMatchObject({
      conversationId: `discord:${id}`,
      text: "hello",
      addressed: "bot",
      attachments: [{ name: "a.bin" }],
      reply: { isDirect: true },
    });
  });

  test("a message in a server's channel that does not name the server is not a direct message", async () => {
    const { discord, guild, channel, ada, events, message, heard } = await startStage();
    const unnamed = (id: string, channel_id: string, content: string, more = {}) => ({
      id,
      channel_id,
      content,
      author: { id: ada.id, username: "ada" },
      ...more,
    });
    const [session] = discord.gateway.sessions;
    session?.dispatch("MESSAGE_CREATE", unnamed("900000000000000001", channel.id, "to people"));
    session?.dispatch(
      "MESSAGE_CREATE",
      unnamed("900000000000000002", "900000000000000000", "of a type", { channel_type: 0 }),
    );
    await heard(channel, ada);
    expect(events).toEqual([]);
    session?.dispatch("MESSAGE_CREATE", unnamed("900000000000000003", channel.id, `<@${discord.bot.id}> hi`));
    expect(await message(0)).toMatchObject({ author: { mayConfigure: false }, reply: { workspaceId: guild.id } });
  });
});

describe("edits and deletions", () => {
  test("an edit and a deletion belong to the conversation of their message", async () => {
    const { discord, channel, ada, event, message } = await startStage();
    const said = discord.people.say(channel, ada, "frist", { mentionBot: true });
    const { conversationId, messageId, reply } = await message(0);
    discord.people.edit(said, `<@${discord.bot.id}> first`);
    discord.people.delete(said);
    expect(await event(1)).toMatchObject({ kind: "edited", text: "first", conversationId, messageId, reply });
    expect(await event(2)).toMatchObject({ kind: "deleted", conversationId, messageId, author: { id: ada.id } });
  });

  test("an update with the same text, a preview or a new thread is not an edit", async () => {
    const { discord, channel, ada, bob, message, events, heard } = await startStage();
    const said = discord.people.say(channel, ada, "see https://a.example", { mentionBot: true });
    await message(0);
    discord.people.edit(said, `<@${discord.bot.id}> see https://a.example`);
    discord.people.unfurl(said);
    discord.people.openThread(said, bob, "thread");
    await heard(channel, ada);
    expect(events).toHaveLength(1);
  });

  test("an edit that addresses the bot for the first time is a question", async () => {
    const { discord, channel, ada, event } = await startStage();
    const said = discord.people.say(channel, ada, "hello");
    discord.people.edit(said, `<@${discord.bot.id}> hello`);
    expect(await event(0)).toMatchObject({ kind: "message", key: `discord:${said.id}`, text: "hello" });
    expect(await event(1)).toMatchObject({ kind: "edited", text: "hello" });
  });

  test("an edit in a thread that addresses the bot for the first time is one question", async () => {
    const { discord, channel, ada, event, message } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    const said = discord.people.say(thread, ada, "hello");
    expect(await message(0)).toMatchObject({ addressed: "open" });
    discord.people.edit(said, `<@${discord.bot.id}> hello`);
    expect(await event(1)).toMatchObject({ kind: "edited", text: "hello", addressed: "bot" });
    discord.people.edit(said, `<@${discord.bot.id}> hello you`);
    expect(await event(2)).not.toHaveProperty("addressed");
  });

  test("an edit of an old message in a thread is not a question", async () => {
    const { discord, channel, ada, event, message } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    const said = discord.people.say(thread, ada, "hello");
    await message(0);
    discord.clock.advance(20 * 60_000);
    discord.people.edit(said, `<@${discord.bot.id}> hello again`);
    expect(await event(1)).not.toHaveProperty("addressed");
  });

  test("the bot ignores edits and deletions of messages between users", async () => {
    const { discord, channel, ada, events, heard, answer } = await startStage();
    const said = discord.people.say(channel, ada, "hello");
    discord.people.edit(said, "hello there");
    discord.people.delete(said);
    await heard(channel, ada);
    expect(events).toEqual([]);
    // The deletion of the bot's own answer is no event either.
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.say(thread, ada, "hello", { mentionBot: true });
    discord.people.delete(await answer(0, "hi"));
    await heard(thread, ada);
    expect(events).toHaveLength(1);
  });

  test("the bot handles edits and deletions of messages that an earlier process received", async () => {
    const { discord, channel, ada, adapter } = await startStage({ listens: false });
    const said = discord.people.say(channel, ada, "before", { mentionBot: true });
    const dm = discord.openDm(ada);
    const direct = discord.people.say(dm, ada, "before");
    await adapter.close();
    discord.clock.advance(20 * 60_000);
    const { event, events } = await startAdapter(discord);
    discord.people.edit(direct, "after");
    discord.people.delete(said);
    await event(1);
    expect(events.map(({ kind }) => kind).sort()).toEqual(["deleted", "edited"]);
  });
});

describe("the text of a message", () => {
  test("the text of a message has names instead of ids, and the bot's own name only in the middle of a sentence", async () => {
    const { discord, guild, channel, ada, bob, message } = await startStage();
    const member = guild.members.get(bob.id);
    if (member !== undefined) member.nick = "Bobby";
    const bot = `<@${discord.bot.id}>`;
    discord.people.say(
      channel,
      ada,
      `${bot}, tell <@${bob.id}> in <#${channel.id}> what ${bot} is <:cat:123456789012345678> ${bot}`,
    );
    discord.people.say(channel, bob, "I am here", { mentionBot: true });
    expect((await message(0)).text).toBe("tell @Bobby in #general what @palaver is :cat:");
    expect((await message(1)).author.name).toBe("Bobby");
  });

  test("a message that only mentions the bot arrives", async () => {
    const { discord, channel, ada, message } = await startStage();
    discord.people.say(channel, ada, "", { mentionBot: true });
    expect((await message(0)).text).toBe("@palaver");
  });
});
