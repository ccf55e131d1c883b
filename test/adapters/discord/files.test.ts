import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Adapter, AttachmentRef } from "../../../src/adapter.ts";
import { createStillClock } from "../../simulators/discord/clock.ts";
import { signal, startAdapter, startStage } from "./stage.ts";

const HOUR_MS = 3_600_000;
const GET = "GET /channels/:channel/messages/:message";
const bytes = new Uint8Array([0, 1, 2, 255]);

async function read(adapter: Adapter, ref: AttachmentRef): Promise<number[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of await adapter.openAttachment(ref, signal)) chunks.push(chunk);
  return Array.from(Buffer.concat(chunks));
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

describe("a file somebody attached", () => {
  test("is opened by the link it came with, while that is good", async () => {
    const { adapter, ref, asked } = await startFile();
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(asked()).toBe(0);
  });

  test("is opened by a fresh link when its own has ended", async () => {
    const { adapter, clock, ref, asked } = await startFile();
    clock.advance(25 * HOUR_MS);
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(await read(adapter, ref)).toEqual([...bytes]);
    expect(asked()).toBe(1);
  });

  test("is opened by a process that has never seen it", async () => {
    const { discord, ref } = await startFile();
    const { adapter } = await startAdapter(discord, { listens: false });
    expect(await read(adapter, JSON.parse(JSON.stringify(ref)) as AttachmentRef)).toEqual([...bytes]);
  });

  test("is said to be gone when its message is", async () => {
    const { discord, clock, adapter, said, ref } = await startFile();
    discord.people.delete(said);
    clock.advance(25 * HOUR_MS);
    await expect(read(adapter, ref)).rejects.toThrow(/"a\.png" cannot be opened any more/);
  });

  test.each([
    "http://169.254.169.254/latest",
    "https://cdn.discordapp.com.evil.example/a.png",
    "file:///etc/passwd",
    "not a link",
  ])("is not looked for at %s", async (id) => {
    const { adapter, ref } = await startFile();
    await expect(read(adapter, { ...ref, id })).rejects.toThrow(/cannot be opened/);
  });

  test("is not looked for on a server that is not Discord's", async () => {
    const { adapter, ref } = await startFile();
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      response.end("secrets of the network");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    await expect(read(adapter, { ...ref, id: `http://127.0.0.1:${port}/a.png` })).rejects.toThrow(
      /not kept by Discord/,
    );
    expect(asked).toBe(0);
  });

  test("is not there when Discord says so", async () => {
    const { adapter, discord, ref } = await startFile();
    const id = `${new URL(discord.apiUrl).origin}/attachments/1/2/a.png`;
    await expect(read(adapter, { ...ref, id })).rejects.toThrow(/404/);
  });
});
