import { describe, expect, test } from "vitest";
import { attach } from "../../../../adapters/discord/write/files.ts";
import { shown } from "../../../../lab/discord-sim/world.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { OutboundFile } from "../../../../src/port/sink.ts";
import { startDiscord } from "../../../support/discord.ts";
import { botMessages, draft, signal, startStage } from "../stage.ts";

const file = (more: Partial<OutboundFile> = {}): OutboundFile => {
  return { name: "cat.png", contentType: "image/png", bytes: new Uint8Array([1, 2, 3]), ...more };
};

describe("files sent to Discord", () => {
  test("files have a caption, a description, and a spoiler cover if requested", async () => {
    const { discord, adapter, channel } = await startStage({ listens: false });
    const sink = adapter.sink({ platform: "discord", channelId: channel.id }, NO_RIGHT);
    const files = [file({ altText: "A cat.", isSpoiler: true }), file({ name: "plain.png" })];
    const caption = draft("**Two**", { buttons: [{ action: "again", turnId: "p", label: "Again" }] });
    const posted = await sink.upload(files, caption, "n", signal);
    const [message] = botMessages(discord, channel);
    if (message === undefined) throw new Error("There is no message.");
    const { content, attachments, components } = shown(message);
    expect(content).toBe("**Two**");
    expect(attachments.map(({ name, description }) => [name, description])).toEqual([
      ["SPOILER_cat.png", "A cat."],
      ["plain.png", undefined],
    ]);
    expect(JSON.stringify(components)).toContain('"again:p"');
    expect(posted.attachments?.map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([
      ["SPOILER_cat.png", 3],
      ["plain.png", 3],
    ]);
    const [ref] = posted.attachments ?? [];
    if (ref === undefined) throw new Error("There is no file.");
    const chunks = await Array.fromAsync(await adapter.openAttachment(ref, signal));
    expect(Array.from(Buffer.concat(chunks))).toEqual([1, 2, 3]);
  });

  test("files are uploaded once per nonce", async () => {
    const { discord, adapter, channel } = await startStage({ listens: false });
    const sink = adapter.sink({ platform: "discord", channelId: channel.id }, NO_RIGHT);
    discord.faults.failNext("POST /channels/:channel/messages", { status: 502, when: "after" });
    await expect(sink.upload([file()], undefined, "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    const { attachments } = await sink.upload([file()], undefined, "n", signal);
    expect(botMessages(discord, channel)).toHaveLength(1);
    expect(attachments).toHaveLength(1);
  });

  test("files get shortened descriptions, and names without misleading characters", () => {
    const { body, files } = attach({}, [file({ name: 'a/b\u202e"c.png', altText: "数".repeat(2_000) })]);
    expect(body).toEqual({ attachments: [{ id: "0", filename: "bc.png", description: `${"数".repeat(1_023)}…` }] });
    expect(files?.[0]?.name).toBe("bc.png");
  });

  test("files can be as large as the server's boosts allow, and 10 MiB elsewhere", async () => {
    const discord = await startDiscord();
    const boosted = discord.addChannel(discord.addGuild({ premiumTier: 2 }), "boosted");
    const { adapter, channel, ada } = await startStage({ discord });
    const large = file({ bytes: new Uint8Array(21 * 2 ** 20) });
    const sinkOf = (channelId: string) => adapter.sink({ platform: "discord", channelId }, NO_RIGHT);
    await sinkOf(boosted.id).upload([large], undefined, "n", signal);
    expect(botMessages(discord, boosted)).toHaveLength(1);
    for (const { id } of [channel, discord.openDm(ada)]) {
      expect(sinkOf(id).limits.maxFileBytes).toBe(10 * 2 ** 20);
      await expect(sinkOf(id).upload([large], undefined, "n", signal)).rejects.toThrow(/over 10 MiB/);
    }
    expect(discord.requests.filter(({ status }) => status === 413)).toEqual([]);
  });

  test("files can be as large as an interaction allows until its token expires", async () => {
    const commands = [{ name: "help", description: "Show what I can do." }];
    const { discord, adapter, channel, ada, event } = await startStage({ commands });
    ada.nitroBytes = 500 * 2 ** 20;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "help", {});
    const { reply } = await event(0);
    const sink = adapter.sink(reply, NO_RIGHT);
    await sink.upload([file({ bytes: new Uint8Array(23 * 2 ** 20) })], undefined, "n", signal);
    const shownFiles = botMessages(discord, channel).flatMap((message) => shown(message).attachments);
    expect(shownFiles.map(({ bytes }) => bytes.length)).toEqual([23 * 2 ** 20]);
    discord.clock.advance(15 * 60_000);
    expect(sink.limits.maxFileBytes).toBe(10 * 2 ** 20);
  });
});
