import { expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { makeDataDir, startService } from "../../lab/support/service.ts";
import { connectLocal, isBot } from "../support/local-client.ts";

/** The sandbox takes five seconds for a slow image, and creates two images at a time. */
const PROMPT = "/imagine a fox slowly --count 4";
const pictures = (messages: MessageRow[]) => messages.filter((message) => isBot(message) && message.files.length > 0);

test("an image job that kill -9 interrupts ends with four images, none twice", async () => {
  const data = await makeDataDir();
  onTestFinished(data.remove);
  const first = await startService(data.path);
  onTestFinished(async () => void (await first.end("SIGKILL")));
  const client = await connectLocal(first.url);
  await client.send(PROMPT);
  await client.until((messages) => messages.some(({ text }) => text.includes("… 2 of 4 done")));
  client.close();
  expect(await first.end("SIGKILL")).toBe("SIGKILL");

  const second = await startService(data.path);
  onTestFinished(async () => void (await second.end("SIGKILL")));
  const later = await connectLocal(second.url);
  onTestFinished(() => later.close());
  const isOver = (messages: MessageRow[]) => messages.filter(isBot).every(({ files }) => files.length > 0);
  const end = await later.until((messages) => pictures(messages).length >= 4 && isOver(messages));
  const names = pictures(end).flatMap(({ files }) => files.map(({ name }) => name));
  expect(names.toSorted()).toEqual(["1", "2", "3", "4"].map((number) => `a-fox-slowly-${number}.png`));
  expect(await second.end("SIGTERM")).toBe(0);
});
