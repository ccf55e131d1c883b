import { createServer } from "node:http";
import type { APIAttachment } from "discord.js";
import { describe, expect, test } from "vitest";
import { createFiles, type Files, picturesOf } from "../../../../adapters/discord/api/files.ts";
import { createStillClock } from "../../../../lab/discord-sim/clock.ts";
import { createRawClient } from "../../../../lab/discord-sim/raw-client.ts";
import type { Adapter } from "../../../../src/port/adapter.ts";
import type { AttachmentRef } from "../../../../src/port/events.ts";
import { listenUntilTestEnds } from "../../../support/listen.ts";
import { signal, startAdapter, startStage } from "../stage.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const GET = "GET /channels/:channel/messages/:message";
const bytes = new Uint8Array([0, 1, 2, 255]);

async function read(adapter: Adapter, ref: AttachmentRef): Promise<number[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await adapter.openAttachment(ref, signal)) chunks.push(chunk);
  return Array.from(Buffer.concat(chunks));
}

async function bytesAt(url: string | undefined): Promise<number[]> {
  const response = await fetch(url ?? "");
  if (!response.ok) throw new Error(`The answer was ${response.status}.`);
  return [...new Uint8Array(await response.arrayBuffer())];
}

async function startFile() {
  const clock = createStillClock();
  const stage = await startStage({ simulator: { clock } });
  const { discord, channel, ada, message } = stage;
  const said = discord.people.say(channel, ada, "look", { mentionBot: true, attachments: [{ name: "a.png", bytes }] });
  const [ref] = (await message(0)).attachments;
  if (ref === undefined) throw new Error("The file is missing.");
  const asked = () => discord.requests.filter(({ route }) => route === GET).length;
  return { ...stage, clock, said, ref, asked };
}

describe("attachments with missing fields", () => {
  const api = { call: () => Promise.reject(new Error("not part of this test")), settled: async () => {} };
  const files = createFiles({ api, now: Date.now });

  test("a message without a list of attachments has none", () => {
    const bare = { id: "1", channel_id: "2" } as Parameters<Files["toPostedRefs"]>[0];
    expect(files.toPostedRefs(bare)).toEqual([]);
  });

  test("a file without a size has 0 bytes until it is read", () => {
    const bare = { id: "1", filename: "a.txt", url: "https://cdn.discordapp.com/a.txt" } as APIAttachment;
    expect(files.toLinkedRefs([bare])).toMatchObject([{ name: "a.txt", sizeBytes: 0 }]);
  });
});

test("a file of an unknown type is an image if it has a size in pixels", async () => {
  const unknown = { id: "1", filename: "a", size: 1, url: "", proxy_url: "", content_type: null };
  const attachments = [unknown, { ...unknown, id: "2", width: 10 }] as unknown as APIAttachment[];
  expect(picturesOf({ attachments }).map(({ id }) => id)).toEqual(["2"]);
});

describe("an attached file", () => {
  test("an attached file is opened with its original link while that is valid", async () => {
    const { adapter, ref, asked } = await startFile();
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(asked()).toBe(0);
  });

  test("an attached file is opened with a fresh link if its own has expired", async () => {
    const { adapter, clock, ref, asked } = await startFile();
    clock.advance(25 * HOUR_MS);
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(asked()).toBe(1);
  });

  test("the public link of an attached file is renewed if it would expire within a quarter of an hour", async () => {
    const { adapter, clock, ref, asked } = await startFile();
    const first = await adapter.publicUrl?.(ref, signal);
    expect(await bytesAt(first)).toEqual([...bytes]);
    clock.advance(24 * HOUR_MS - 16 * MINUTE_MS);
    expect(await adapter.publicUrl?.(ref, signal)).toBe(first);
    expect(asked()).toBe(0);
    clock.advance(2 * MINUTE_MS);
    const second = await adapter.publicUrl?.(ref, signal);
    expect(second).not.toBe(first);
    expect(asked()).toBe(1);
    clock.advance(20 * MINUTE_MS);
    expect(await bytesAt(second)).toEqual([...bytes]);
  });

  test("a process that has never seen an attached file can open it", async () => {
    const { discord, ref } = await startFile();
    const { adapter } = await startAdapter(discord, { listens: false });
    expect(await read(adapter, JSON.parse(JSON.stringify(ref)) as AttachmentRef)).toEqual([...bytes]);
  });

  test("an attached file is gone once its message is deleted", async () => {
    const { discord, clock, adapter, said, ref } = await startFile();
    discord.people.delete(said);
    clock.advance(25 * HOUR_MS);
    await expect(read(adapter, ref)).rejects.toThrow(/"a\.png" can no longer be opened/);
  });

  test.each([
    "http://169.254.169.254/latest",
    "https://cdn.discordapp.com.evil.example/a.png",
    "file:///etc/passwd",
    "not a link",
  ])("the bot never reads an attached file from %s", async (id) => {
    const { adapter, ref } = await startFile();
    await expect(read(adapter, { ...ref, id })).rejects.toThrow(/can no longer be opened/);
    await expect(adapter.publicUrl?.({ ...ref, id }, signal)).rejects.toThrow(/can no longer be opened/);
  });

  test("the bot does not follow a link to a server other than Discord's", async () => {
    const { adapter, ref } = await startFile();
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      response.end("secrets of the network");
    });
    const id = `${await listenUntilTestEnds(server)}/a.png`;
    await expect(read(adapter, { ...ref, id })).rejects.toThrow(/not hosted by Discord/);
    expect(asked).toBe(0);
  });

  test("the bot cannot open a file that Discord reports as gone", async () => {
    const { adapter, discord, ref } = await startFile();
    const id = `${new URL(discord.apiUrl).origin}/attachments/1/2/a.png`;
    await expect(read(adapter, { ...ref, id })).rejects.toThrow(/404/);
  });
});

describe("the bot can open a file that a user uploaded with a command", () => {
  async function startUpload() {
    const clock = createStillClock();
    const stage = await startStage({ simulator: { clock } });
    const { discord, channel, ada, message } = stage;
    await discord.until(() => discord.commands().length > 0);
    const image = { name: "a.png", bytes };
    const asked = discord.people.command(channel, ada, "ask", { prompt: "what is it?", image });
    const [ref] = (await message(0)).attachments;
    await discord.until(() => asked.acknowledgedAs === 5);
    if (ref === undefined) throw new Error("The file is missing.");
    return { ...stage, clock, ref };
  }

  test("a file uploaded with a command can be read and has a public link while Discord keeps it", async () => {
    const { adapter, ref } = await startUpload();
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(await bytesAt(await adapter.publicUrl?.(ref, signal))).toEqual([...bytes]);
  });

  test("the bot refuses a file uploaded with a command once Discord deleted it, and says what to do", async () => {
    const { adapter, clock, ref } = await startUpload();
    clock.advance(25 * HOUR_MS);
    const gone = /"a\.png" can no longer be opened\. .*Attach it again/;
    await expect(read(adapter, ref)).rejects.toThrow(gone);
    await expect(adapter.publicUrl?.(ref, signal)).rejects.toThrow(gone);
  });

  test("a file uploaded with a command gets a renewed link if Discord renews the link", async () => {
    const { adapter, discord, clock, channel, ada, ref } = await startUpload();
    // This link to a message's file does not contain the message's id.
    const said = discord.people.say(channel, ada, "x", { attachments: [{ name: "b.png", bytes }] });
    const call = createRawClient(discord);
    const { body } = await call("GET", `/channels/${channel.id}/messages/${said.id}`);
    const [{ url } = { url: "" }] = body["attachments"] as { url: string }[];
    clock.advance(25 * HOUR_MS);
    expect(await read(adapter, { ...ref, id: url })).toEqual([...bytes]);
  });
});
