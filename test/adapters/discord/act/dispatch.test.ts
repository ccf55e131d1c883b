import { describe, expect, test } from "vitest";
import { toExtra } from "../../../../adapters/discord/write/interaction-token.ts";
import type { Fault } from "../../../../lab/discord-sim/faults.ts";
import { type Message, shown } from "../../../../lab/discord-sim/world.ts";
import { COMMANDS } from "../../../../src/commands/commands.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { startDiscord } from "../../../support/discord.ts";
import { botMessages, botTexts, draft, signal, startAdapter } from "../stage.ts";
import { CALLBACK, STOP, startAsk, startCommands } from "./ask.ts";

const EDIT = "PATCH /webhooks/:webhook/:token/messages/:message";
const MINUTE_MS = 60_000;

const isPrivate = (message: Message | undefined) => message?.ephemeralFor !== undefined;

describe("rating an answer as bad", () => {
  const BAD: Button = { action: "bad", turnId: "turn", label: "Bad answer" };

  async function startJudging(fault?: Fault) {
    const stage = await startCommands();
    const { discord, channel, ada, message, event } = stage;
    discord.people.say(channel, ada, "why?", { mentionBot: true });
    const answer = await stage.answer(0, "Because.", { buttons: [BAD] });
    if (fault !== undefined) discord.faults.failNext(CALLBACK, fault);
    const pressed = discord.people.press(answer, ada, "Bad answer");
    const [{ conversationId }, vote] = [await message(0), await event(1)];
    return { ...stage, conversationId, answer, pressed, vote };
  }

  test("the bot counts a bad rating at once and opens a form, and adds the reason from the form to the same turn", async () => {
    const { discord, pressed, vote, event, conversationId, answer, channel } = await startJudging();
    expect(vote).toMatchObject({ kind: "action", action: "bad", turnId: "turn", conversationId });
    expect(vote).not.toHaveProperty("reason");
    const form = await discord.until(() => pressed.modal, "the form");
    expect(form).toMatchObject({ title: "What was wrong with the answer?" });
    const sent = discord.people.submitModal(pressed, { reason: " the wrong year " });
    expect(await event(2)).toMatchObject({ ...judged(vote), reason: "the wrong year" });
    await discord.until(() => sent.acknowledgedAs === 6);
    // Neither the button press nor the form changed anything visible.
    expect(botMessages(discord, channel)).toHaveLength(1);
    expect(shown(answer).content).toBe("Because.");
  });

  test("the bot counts a bad rating even if Discord no longer accepts the form", async () => {
    const { vote } = await startJudging({ status: 404, code: 10062 });
    expect(vote).toMatchObject({ kind: "action", action: "bad", turnId: "turn" });
  });

  function judged(vote: InboundEvent) {
    if (vote.kind !== "action") throw new Error("It is no press.");
    const { kind, action, turnId, conversationId, author } = vote;
    return { kind, action, turnId, conversationId, author };
  }
});

test("/forget passes on the named user before the other words, in whatever order the fields were filled in", async () => {
  const { discord, channel, ada, event } = await startCommands();
  discord.people.command(channel, ada, "forget", { what: "for good", person: ada.id });
  expect(await event(0)).toMatchObject({ name: "forget", text: `person:${ada.id} for good` });
});

describe("/persona", () => {
  test("/persona opens a form with the current persona, and submitting the form sends one private command", async () => {
    const readPersona = async () => ({ persona: "a pirate", prompts: ["Who is on call?", "Sum up today"] });
    const { discord, channel, ada, events, event } = await startCommands({ readPersona });
    const given = discord.people.command(channel, ada, "persona", {});
    const form = await discord.until(() => given.modal, "the form");
    expect(JSON.stringify(form)).toContain('"value":"Who is on call?\\nSum up today"');
    const sent = discord.people.submitModal(given, { persona: " a nurse ", prompts: "" });
    const options = { persona: "a nurse", prompts: "" };
    expect(await event(0)).toMatchObject({ kind: "command", name: "persona", text: "", options });
    expect(events[0]?.reply).toMatchObject({ channelId: channel.id, visibleTo: ada.id });
    await discord.until(() => sent.acknowledgedAs === 5, "the acknowledgement");
  });

  test("/persona opens an empty form if loading the current persona takes too long", async () => {
    const { discord, channel, ada, event } = await startCommands({
      readPersona: () => Promise.reject(new Error("no")),
    });
    const given = discord.people.command(channel, ada, "persona", {});
    await discord.until(() => given.modal, "the form");
    discord.people.submitModal(given, { prompts: "Who is on call?" });
    expect(await event(0)).toMatchObject({ name: "persona", options: { persona: "", prompts: "Who is on call?" } });
  });
});

describe("/ask", () => {
  test("the bot acknowledges /ask at once, and answers its question in the same channel", async () => {
    const { discord, channel, ada, asked, event, sink } = await startAsk();
    await discord.until(() => asked.acknowledgedAs === 5);
    expect(event).toMatchObject({
      text: "why?",
      addressed: "bot",
      key: `discord:${asked.id}`,
      conversationId: `discord:${channel.id}:${asked.id}`,
      author: { id: ada.id, name: "ada", mayConfigure: false },
    });
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
    const { id } = await sink.post(draft("Because", { buttons: [STOP] }), "n", signal);
    await sink.edit(id, draft("Because."), signal);
    expect(botTexts(discord, channel)).toEqual(["Because."]);
    expect(isPrivate(botMessages(discord, channel)[0])).toBe(false);
  });

  test("Discord counts an answer to /ask against the interaction's rate limits, not the channel's", async () => {
    const { reply, sink } = await startAsk();
    expect(sink.budget.key).toMatch(/^discord-webhook:[\w-]{16}$/);
    expect(sink.budget.key).not.toContain(reply.extra?.["token"]);
    expect((await sink.post(draft("a"), "n", signal)).budget).toMatchObject({ limit: 5, remaining: 4 });
  });

  test("the bot answers a private /ask in private, including the last message and the files", async () => {
    const { discord, channel, ada, reply, sink } = await startAsk({ isPrivate: true });
    expect(reply.visibleTo).toBe(ada.id);
    const { id } = await sink.post(draft("one"), "n:0", signal);
    await sink.post(draft("two"), "n:1", signal);
    const file = { name: "a.md", contentType: "text/markdown", bytes: new Uint8Array(3) };
    await sink.upload([file], undefined, "n:2", signal);
    await sink.edit(id, draft("one!"), signal);
    expect(botMessages(discord, channel).map(isPrivate)).toEqual([true, true, true]);
  });

  test("the bot finishes a public answer to /ask with the bot token once the interaction expires", async () => {
    const { discord, channel, sink } = await startAsk();
    const { id } = await sink.post(draft("a"), "n:0", signal);
    discord.clock.advance(15 * MINUTE_MS);
    await sink.edit(id, draft("ab"), signal);
    await sink.post(draft("c"), "n:1", signal);
    expect(botTexts(discord, channel)).toEqual(["ab", "c"]);
  });

  test("the bot does not finish a private answer to /ask in public once the interaction expires", async () => {
    const { discord, channel, sink } = await startAsk({ isPrivate: true });
    const { id } = await sink.post(draft("a"), "n:0", signal);
    discord.clock.advance(15 * MINUTE_MS);
    for (const write of [() => sink.edit(id, draft("ab"), signal), () => sink.post(draft("c"), "n:1", signal)])
      await expect(write()).rejects.toMatchObject({ kind: "gone" });
    expect(botMessages(discord, channel)).toHaveLength(1);
  });

  test.each([
    ["writing it fails once on Discord's side", { status: 502 } as const],
    ["Discord asks it to wait", { status: 429, retryAfterMs: 200, scope: "shared" } as const],
  ])("the bot answers with an apology if it cannot store an /ask, even if %s", async (_, fault) => {
    const { discord, adapter, channel, ada } = await startCommands({
      accept: async () => {
        throw new Error("the disk is full");
      },
    });
    discord.people.command(channel, ada, "ask", { prompt: "why?" });
    await discord.until(() => botMessages(discord, channel).length === 1);
    discord.faults.failNext(EDIT, fault);
    await adapter.pause();
    await discord.until(() => shown(botMessages(discord, channel)[0] as Message).content.includes("can't answer it"));
  });

  test("the bot answers an /ask once even if the resuming process must wait before it can look for earlier messages", async () => {
    const { discord, channel, reply, sink } = await startAsk();
    await sink.post(draft("Drawing …"), "n:0", signal);
    const { id } = await sink.post(draft("Drawn", { buttons: [STOP] }), "n:1", signal);
    const { adapter: other } = await startAdapter(discord, { listens: false });
    discord.faults.failNext("GET /channels/:channel/messages", { status: 429, retryAfterMs: 200, scope: "shared" });
    const again = () => other.sink(reply, NO_RIGHT).post(draft("Drawn anew", { buttons: [STOP] }), "n:1", signal);
    await expect(again()).rejects.toMatchObject({ kind: "rate-limited" });
    discord.clock.advance(MINUTE_MS);
    expect((await again()).id).toBe(id);
    expect(botTexts(discord, channel)).toEqual(["Drawing …", "Drawn"]);
  });

  test("the bot answers in the channel if Discord no longer waits for the answer to /ask", async () => {
    const { discord, channel, sink } = await startAsk({ fault: { status: 404, code: 10062 } });
    await sink.post(draft("Because."), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["Because."]);
  });
});

describe("the acknowledgement of an interaction", () => {
  test.each([
    ["whose answer was lost", { status: "reset", when: "after" } as const],
    ["whose answer never came", { status: "silence", when: "after" } as const],
    ["that did not arrive", { status: "reset" } as const],
    ["that failed on Discord's side", { status: 502 } as const],
    ["that came too early", { status: 429, retryAfterMs: 200, scope: "shared" } as const],
  ])('despite an acknowledgement %s, the bot replaces the "thinking" message with the answer', async (_, fault) => {
    const { discord, channel, sink } = await startAsk({ isPrivate: true, fault });
    await sink.post(draft("Because."), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["Because."]);
    expect(isPrivate(botMessages(discord, channel)[0])).toBe(true);
  });

  test("the bot acknowledges an interaction once the interaction is stored", async () => {
    const { discord, channel, ada } = await startCommands({
      async accept() {
        // This call gets its response before the interaction is stored.
        await adapter
          .sink({ platform: "discord", channelId: channel.id }, NO_RIGHT)
          .post(draft("Storing."), "n", signal);
        unacknowledged.push(asked.acknowledgedAs);
      },
    });
    const unacknowledged: unknown[] = [];
    const { adapter } = await startAdapter(discord, { listens: false });
    const asked = discord.people.command(channel, ada, "ask", { prompt: "why?" });
    await discord.until(() => asked.acknowledgedAs === 5);
    expect(unacknowledged).toEqual([undefined]);
  });

  test.each([true, false])(
    "the bot acknowledges an interaction that it cannot store yet, and asks the user for patience (private: %s)",
    async (isPrivate) => {
      const back = Promise.withResolvers<void>();
      const { discord, adapter, channel, ada, message } = await startCommands({ accept: () => back.promise });
      const asked = discord.people.command(channel, ada, "ask", { prompt: "why?", private: isPrivate });
      await discord.until(() => botTexts(discord, channel).some((text) => text.includes("as soon as it's back")));
      expect(asked.acknowledgedAs).toBe(5);
      expect(botMessages(discord, channel).map((one) => one.ephemeralFor !== undefined)).toEqual([isPrivate]);
      back.resolve();
      const { reply } = await message(0);
      await adapter.sink(reply, NO_RIGHT).post(draft("Because."), "n", signal);
      expect(botTexts(discord, channel)).toEqual(["Because."]);
    },
  );

  test("the bot asks a user for patience, in private, while it cannot store their button press", async () => {
    const back = Promise.withResolvers<void>();
    const accept = (event: InboundEvent) => (event.kind === "action" ? back.promise : Promise.resolve());
    const { discord, channel, ada, answer, event } = await startCommands({ accept });
    discord.people.say(channel, ada, "why?", { mentionBot: true });
    const pressed = discord.people.press(await answer(0, "Because", { buttons: [STOP] }), ada, "Stop");
    await discord.until(() => botTexts(discord, channel).some((text) => text.includes("as soon as it's back")));
    expect(pressed.acknowledgedAs).toBe(6);
    expect(botMessages(discord, channel).map(isPrivate)).toEqual([false, true]);
    expect(botTexts(discord, channel)[0]).toBe("Because");
    back.resolve();
    expect(await event(1)).toMatchObject({ kind: "action", action: "stop" });
  });

  test.each([true, false])(
    "the process that resumes a stored interaction acknowledges the interaction if the first process died before it could (private: %s)",
    async (isPrivate) => {
      const { discord, channel, asked, reply } = await startAsk({ isPrivate, fault: { status: 404, code: 10062 } });
      const { adapter } = await startAdapter(discord, { listens: false });
      await adapter.sink(reply, NO_RIGHT).post(draft("Because."), "n", signal);
      expect(asked.acknowledgedAs).toBe(5);
      expect(botTexts(discord, channel)).toEqual(["Because."]);
      expect(botMessages(discord, channel)[0]?.ephemeralFor !== undefined).toBe(isPrivate);
    },
  );

  test.each([true, false])(
    "the bot answers only after its acknowledgement, however slow that is (private: %s)",
    async (isPrivate) => {
      const { discord, adapter, channel, ada, message } = await startCommands();
      discord.faults.slow(CALLBACK, 300, { times: 1 });
      discord.people.command(channel, ada, "ask", { prompt: "why?", private: isPrivate });
      const { reply } = await message(0);
      await adapter.sink(reply, NO_RIGHT).post(draft("Because."), "n", signal);
      expect(botTexts(discord, channel)).toEqual(["Because."]);
      const writes = discord.requests.filter(({ route }) => /^P(OST|ATCH) .*(interactions|webhooks)/.test(route));
      expect(writes.map(({ status }) => status)).toEqual([204, 200]);
    },
  );

  test("two processes that receive the same interaction store one event and acknowledge it once", async () => {
    const { discord, channel, ada, event } = await startCommands();
    const other = await startAdapter(discord, { commands: COMMANDS });
    discord.people.command(channel, ada, "ask", { prompt: "why?" });
    await discord.until(
      () => discord.requests.filter(({ route, status }) => route === CALLBACK && status !== undefined).length === 2,
    );
    expect((await event(0)).key).toBe((await other.event(0)).key);
    const taken = discord.requests.filter(({ route, status }) => route === CALLBACK && status === 204);
    expect(taken).toHaveLength(1);
  });
});

describe("other commands", () => {
  test("the bot answers commands in private even if the host's clock is ahead or interaction ids contain no time", async () => {
    const discord = await startDiscord();
    const { adapter, channel, ada, event } = await startCommands({
      discord,
      now: () => discord.clock.now() + 20 * MINUTE_MS,
    });
    discord.people.command(channel, ada, "help");
    const { reply } = await event(0);
    await adapter.sink({ ...reply, visibleTo: ada.id }, NO_RIGHT).post(draft("I can do much."), "n", signal);
    expect(botTexts(discord, channel)).toEqual(["I can do much."]);
    expect(botMessages(discord, channel).map(isPrivate)).toEqual([true]);
    const counted = { id: "7", application_id: "8", token: "t", isPrivate: true, isPress: false };
    expect(toExtra({ ...counted, receivedAt: 1_900_000_000_000 })["expiresAt"]).toBe("1900000900000");
  });

  test("a command in a thread that the gateway did not list belongs to the thread's parent channel and server", async () => {
    const { discord, guild, channel, ada, event } = await startCommands();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.gateway.sessions[0]?.dispatch("THREAD_DELETE", { id: thread.id, guild_id: guild.id, type: 11 });
    discord.people.command(thread, ada, "model", { name: "chat-large" });
    expect((await event(0)).reply).toMatchObject({
      channelId: channel.id,
      threadId: thread.id,
      workspaceId: guild.id,
    });
  });

  test("a command passes on the text that its user typed after its name", async () => {
    const { discord, guild, channel, event } = await startCommands();
    const owner = discord.addUser("boss", guild);
    discord.giveRole(guild, owner, discord.addRole(guild, "managers", ["ManageChannels", "ManageMessages"]));
    discord.people.command(channel, owner, "model", { name: "chat-large" });
    discord.people.command(channel, owner, "persona", { text: "set a pirate" });
    discord.people.command(channel, owner, "model", { name: "chat-large", temperature: "0.2", thinking: "shown" });
    discord.people.command(channel, owner, "model", { length: "default", format: "json" });
    expect(await event(0)).toMatchObject({
      name: "model",
      text: "chat-large",
      author: { isModerator: true, mayConfigure: true },
    });
    expect(await event(1)).toMatchObject({ name: "persona", text: "set a pirate" });
    expect(await event(2)).toMatchObject({ text: "chat-large --temperature 0.2 --thinking shown" });
    expect(await event(3)).toMatchObject({ text: "--length default --format json" });
  });

  test("a command in a thread or a direct conversation applies to that conversation", async () => {
    const { discord, channel, ada, event } = await startCommands();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.command(thread, ada, "help");
    expect(await event(0)).toMatchObject({ conversationId: `discord:${thread.id}` });
    const dm = discord.openDm(ada);
    discord.people.command(dm, ada, "help");
    const direct = await event(1);
    expect(direct).toMatchObject({ conversationId: `discord:${dm.id}` });
    expect(direct.author).toEqual({ id: ada.id, name: "ada" });
  });

  test("if a private answer comes too late, the bot drops the answer instead of posting it in public", async () => {
    const { discord, adapter, channel, ada, event } = await startCommands();
    for (let tries = 0; tries < 2; tries++) discord.faults.failNext(CALLBACK, { status: 404, code: 10062 });
    discord.people.command(channel, ada, "help");
    const { reply } = await event(0);
    const telling = adapter.sink(reply, NO_RIGHT).post(draft("This is what I can do."), "n", signal);
    await expect(telling).rejects.toMatchObject({ kind: "gone" });
    expect(botTexts(discord, channel)).toEqual([]);
  });
});

describe("the menu of a message", () => {
  test("'Ask about this' in a message's menu asks the bot about that message, with its text and files", async () => {
    const { discord, channel, ada, bob, message } = await startCommands();
    const bytes = new Uint8Array([1]);
    const words = `E = mc², <@${ada.id}>, see <#${channel.id}>`;
    const said = discord.people.say(channel, bob, words, { attachments: [{ name: "a.txt", bytes }] });
    discord.people.contextMenu(said, ada, "Ask about this");
    const event = await message(0);
    expect(event.text).toBe("Explain or answer this message from bob:\n> E = mc², @ada, see #general");
    expect(event).toMatchObject({ author: { name: "ada" }, attachments: [{ name: "a.txt" }] });
  });
});

describe("/model", () => {
  test("/model suggests the available models", async () => {
    const { discord, guild, channel } = await startCommands({ listModels: async () => ["chat-small", "chat-large"] });
    const boss = discord.addUser("boss", guild);
    discord.giveRole(guild, boss, discord.addRole(guild, "managers", ["ManageChannels"]));
    const choices = await discord.people.autocomplete(channel, boss, "model", "name", { name: "lar" });
    expect(choices).toEqual([{ name: "chat-large", value: "chat-large" }]);
  });
});

describe("buttons", () => {
  async function startAnswer() {
    const stage = await startCommands();
    const { discord, channel, ada } = stage;
    discord.people.say(channel, ada, "question", { mentionBot: true });
    const buttons: Button[] = [STOP, { action: "retry", turnId: "turn", label: "Retry" }];
    return { ...stage, answer: await stage.answer(0, "answer", { buttons }) };
  }

  test("a button press tells the bot whether its user can act for others", async () => {
    const { discord, guild, answer, event } = await startAnswer();
    const mod = discord.addUser("mod", guild);
    const mods = discord.addRole(guild, "mods", ["ManageMessages"]);
    discord.giveRole(guild, mod, mods);
    discord.people.press(answer, mod, "Stop");
    const { author } = await event(1);
    expect(author).toEqual({ id: mod.id, name: "mod", isModerator: true, mayConfigure: false, groups: [mods.id] });
  });

  test("a pressed button answers its user in private and leaves the message alone", async () => {
    const { discord, adapter, channel, bob, answer, event } = await startAnswer();
    discord.people.press(answer, bob, "Retry");
    const { reply } = await event(1);
    await adapter.sink(reply, NO_RIGHT).post(draft("Only ada can do that."), "n", signal);
    const [first, notice] = botMessages(discord, channel);
    expect(first && shown(first).content).toBe("answer");
    expect(notice?.ephemeralFor).toBe(bob.id);
  });

  test("a button press can change the button's message even if the bot cannot write in the channel", async () => {
    const { discord, channel, adapter, ada, answer, event } = await startAnswer();
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessages"] });
    discord.people.press(answer, ada, "Stop");
    const { reply } = await event(1);
    await adapter.sink(reply, NO_RIGHT).edit(`discord:${channel.id}:${answer.id}`, draft("It has ended."), signal);
    expect(shown(answer)).toMatchObject({ content: "It has ended.", components: [] });
    expect(discord.requests.at(-1)).toMatchObject({ route: EDIT, status: 200 });
  });

  test("the bot says that a button no longer works if it does not know the button's kind", async () => {
    const { discord, ada, channel, answer } = await startAnswer();
    const [row] = shown(answer).components as unknown as { components: { custom_id: string }[] }[];
    const [button] = row?.components ?? [];
    if (button !== undefined) button.custom_id = "something else";
    discord.people.press(answer, ada, "Stop");
    await discord.until(() => botMessages(discord, channel).length === 2);
    expect(isPrivate(botMessages(discord, channel)[1])).toBe(true);
  });
});
