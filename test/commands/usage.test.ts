import { expect, test } from "vitest";
import { createUsageCommand } from "../../src/commands/usage.ts";
import type { Author, CommandEvent } from "../../src/port/events.ts";
import { type Amounts, NOTHING, type UsageSubject } from "../../src/usage/usage.ts";
import { startEngine } from "../support/engine.ts";
import { ada, command, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const { signal } = new AbortController();

async function ask(author: Author, readMonth: (subject: UsageSubject) => Promise<Amounts> = async () => NOTHING) {
  const { sink, texts } = fakePlatform();
  const asked: UsageSubject[] = [];
  const note = (subject: UsageSubject) => readMonth(subject).finally(() => asked.push(subject));
  const usage = {
    readTable: async () => [],
    readMonth: note,
    readOwnMonth: (platform: string, { id: authorId }: Pick<Author, "id">) => note({ platform, authorId }),
  };
  const reply = { platform: "test", channelId: "general", workspaceId: "acme" };
  const event: CommandEvent = { ...command("usage", "", { author }), reply };
  await createUsageCommand({ usage, access: { isAdmin: () => false } }).run(event, sink, signal);
  return { text: texts()[0], asked };
}

test("/usage tells everybody their own use, and those who may configure the channel that of others", async () => {
  expect(await ask({ ...ada, mayConfigure: false })).toEqual({
    text: "You used this month: no answers, no tokens, no pictures.",
    asked: [{ platform: "test", authorId: "ada" }],
  });
  const { text, asked } = await ask({ ...ada, mayConfigure: true });
  expect(text).toContain("\n\nThis channel: no answers, no tokens, no pictures.");
  expect(asked).toHaveLength(2);
  expect((await ask({ ...ada, isModerator: true })).asked).toContainEqual({ platform: "test", workspaceId: "acme" });
});

test("/usage says that the store is out of reach", async () => {
  const { text } = await ask(ada, () => Promise.reject(new Error("away")));
  expect(text).toContain("my memory is out of reach");
});

test("usage is exported to its person, and erased with them", async () => {
  const { accept, idle, texts, channel } = startEngine();
  await accept(message("hello"));
  await idle();
  await accept(command("usage"));
  await accept(command("export"));
  await idle();
  expect(texts().at(-2)).toMatch(/^You used this month: 1 answer, \d+ tokens \(\d+ of them estimated\), no pictures\./);
  const exported = JSON.parse(Buffer.from(channel.at(-1)?.files[0]?.bytes ?? []).toString()) as { usage: unknown };
  expect(exported.usage).toMatchObject([{ answers: 1 }]);
  await accept(command("forget", "me for good"));
  await idle();
  await accept(command("usage"));
  await idle();
  expect(texts().at(-1)).toContain("You used this month: no answers");
});
