import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { ada, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { fakeServices } from "../../lab/support/services.ts";
import type { CommandDeps } from "../../src/commands/command.ts";
import { USAGE } from "../../src/commands/usage.ts";
import type { Author, CommandEvent } from "../../src/port/events.ts";
import { type Amounts, NOTHING, type UsageSubject } from "../../src/usage/usage.ts";

const { signal } = new AbortController();

async function ask(author: Author, readMonth: (subject: UsageSubject) => Promise<Amounts> = async () => NOTHING) {
  const { sink, texts } = fakePlatform();
  const asked: UsageSubject[] = [];
  const note = (subject: UsageSubject) => readMonth(subject).finally(() => asked.push(subject));
  const usage = {
    readTable: async () => [],
    readMonth: note,
  };
  const reply = { platform: "test", channelId: "general", workspaceId: "acme" };
  const event: CommandEvent = { ...command("usage", "", { author }), reply };
  const run = USAGE.create?.(fakeServices<CommandDeps>({ usage, access: { isAdmin: () => false } }));
  await run?.(event, sink, signal);
  return { text: texts()[0], asked };
}

test("/usage shows everyone their own usage, and managers that of their channel", async () => {
  expect(await ask({ ...ada, mayConfigure: false })).toEqual({
    text: "This month you've used no answers, no tokens, no images.",
    asked: [{ platform: "test", authorId: "ada" }],
  });
  const { text, asked } = await ask({ ...ada, mayConfigure: true });
  expect(text).toContain("\n\nThis channel: no answers, no tokens, no images.");
  expect(asked).toHaveLength(2);
  expect((await ask({ ...ada, isModerator: true })).asked).toContainEqual({ platform: "test", workspaceId: "acme" });
});

test("/usage says that the store is unavailable", async () => {
  const { text } = await ask(ada, () => Promise.reject(new Error("away")));
  expect(text).toContain("my storage is unavailable");
});

test("/export and /forget include a person's usage", async () => {
  const { accept, handle, texts, channel } = startEngine();
  await handle(message("hello"));
  await accept(command("usage"));
  await handle(command("export"));
  expect(texts().at(-2)).toMatch(/^This month you've used 1 answer, \d+ tokens \(\d+ of them estimated\), no images\./);
  const exported = JSON.parse(Buffer.from(channel.at(-1)?.files[0]?.bytes ?? []).toString()) as { usage: unknown };
  expect(exported.usage).toMatchObject([{ answers: 1 }]);
  await handle(command("forget", "me for good"));
  await handle(command("usage"));
  expect(texts().at(-1)).toContain("This month you've used no answers");
});
