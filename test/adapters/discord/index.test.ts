import { describe, expect, test } from "vitest";
import type { Channel, Message } from "../../../lab/discord-sim/world.ts";
import { shown } from "../../../lab/discord-sim/world.ts";
import { recordingLog } from "../../../lab/support/log.ts";
import type { Accept } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type AdapterUnderTest, adapterContract } from "../../support/adapter-contract.ts";
import { startDiscord } from "../../support/discord.ts";
import { botMessages, draft, signal, startAdapter, startStage } from "./stage.ts";

adapterContract("Discord", startUnderTest, {
  noRedelivery: "resumed sessions repeat messages, and nobody can make Discord do it at will",
});

/** Each conversation is a thread, which continues without further mentions. */
async function startUnderTest(accept: Accept): Promise<AdapterUnderTest> {
  let delivered = Promise.withResolvers<void>();
  let thread: Channel | undefined;
  let newest: Message | undefined;
  const { discord, adapter, channel, ada } = await startStage({
    async accept(event) {
      try {
        await accept(event);
        delivered.resolve();
      } catch (error) {
        delivered.reject(error);
        throw error;
      }
    },
  });

  let root: Message | undefined;
  let under: Channel | undefined;
  /** The channel, or the thread that was opened from its first message. */
  function room(where: "channel" | "thread"): Channel {
    if (where === "channel") return channel;
    under ??= discord.people.openThread(there(root), ada, "thread");
    return under;
  }

  async function after(act: () => void): Promise<void> {
    delivered = Promise.withResolvers();
    act();
    if (adapter.isConnected()) await delivered.promise;
  }

  return {
    adapter,
    mention: `<@${ada.id}>`,
    begin(text, file) {
      const opened = discord.people.openThread(channel, ada, "thread");
      thread = opened;
      return after(() => {
        newest = discord.people.say(opened, ada, text, {
          mentionBot: true,
          attachments: file === undefined ? [] : [file],
        });
      });
    },
    goOn: (text) => after(() => (newest = discord.people.say(there(thread), ada, text))),
    redeliver: () => Promise.reject(new Error("Not on Discord.")),
    editNewest: (text) => after(() => discord.people.edit(there(newest), `<@${discord.bot.id}> ${text}`)),
    deleteNewest: () => after(() => discord.people.delete(there(newest))),
    press: (id, label) =>
      after(() => {
        const message = botMessages(discord, there(thread)).find((one) => id.endsWith(one.id));
        discord.people.press(there(message), ada, label);
      }),
    discussion: {
      say(text, where) {
        const said = discord.people.say(room(where), ada, text);
        root ??= said;
        discord.clock.advance(10);
      },
      ask: (text, where) => void discord.people.say(room(where), ada, text, { mentionBot: true }),
    },
    async seen() {
      return botMessages(discord, there(thread)).map((message) => {
        const { content, attachments, components } = shown(message);
        return {
          text: content,
          fileNames: attachments.map(({ name }) => name),
          buttons: components.flatMap((row) => labelsOf(row)),
        };
      });
    },
    close: () => adapter.close(),
  };
}

function labelsOf(row: unknown): string[] {
  const { components } = row as { components: { label: string }[] };
  return components.map(({ label }) => label);
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("There is none yet.");
  return value;
}

describe("the Discord adapter", () => {
  test("the Discord adapter logs no users' text", async () => {
    const { log, lines } = recordingLog();
    const { discord, adapter, channel, ada, message, heard } = await startStage({
      log,
      threads: "on",
      simulator: { allow: "anything" },
    });
    await discord.until(() => discord.commands().length > 0);
    discord.faults.failNext("POST /channels/:channel/messages/:message/threads", { status: 500 });
    discord.people.say(channel, ada, "SECRET-WORD one", { mentionBot: true });
    const event = await message(0);
    discord.faults.failNext("POST /channels/:channel/messages", { status: 500 });
    await adapter
      .sink(event.reply, NO_RIGHT)
      .post(draft("SECRET-WORD two"), "n", signal)
      .catch(() => {});
    discord.faults.failNext("POST /interactions/:interaction/:token/callback", { status: 404, code: 10062 });
    const { token } = discord.people.command(channel, ada, "ask", { prompt: "SECRET-WORD three" });
    await message(1);
    discord.gateway.drop();
    await heard(channel, ada);
    expect(lines.length).toBeGreaterThan(2);
    expect(JSON.stringify(lines)).not.toContain("SECRET-WORD");
    expect(JSON.stringify(lines)).not.toContain(token);
    expect(JSON.stringify(lines)).not.toContain(discord.token);
  });
});

test("namePlace returns the names of a server and a channel, and the parent channel's name for a thread", async () => {
  const { discord, guild, adapter, channel, bob } = await startStage({ listens: false });
  const thread = discord.people.openThread(discord.people.say(channel, bob, "hm"), bob, "words of a question");
  for (const { id } of [channel, thread]) {
    expect(await adapter.namePlace?.({ workspaceId: guild.id, channelId: id }, signal)).toEqual({
      workspace: guild.name,
      channel: "#general",
    });
  }
  expect(await adapter.namePlace?.({ channelId: "1" }, signal)).toEqual({ channel: "direct message", isDirect: true });
});

test("the bot answers on a Discord server that leaves out all optional fields", async () => {
  const commands = [{ name: "help", description: "Show what I can do." }];
  // Discord would send an existing server with all fields when the bot connects.
  const discord = await startDiscord({ isSparse: true });
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("ada", guild);
  const { adapter, message, event, reasons } = await startAdapter(discord, { commands });
  discord.people.say(channel, ada, "hello", { mentionBot: true });
  await adapter.sink((await message(0)).reply, NO_RIGHT).post(draft("hi"), "n", signal);
  await discord.until(() => discord.commands().length > 0);
  discord.people.command(channel, ada, "help");
  expect(await event(1)).toMatchObject({ kind: "command", name: "help", conversationId: `discord:${channel.id}` });
  expect(botMessages(discord, channel).map((one) => shown(one).content)).toContain("hi");
  expect(reasons).toEqual([]);
});
