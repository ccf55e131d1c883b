import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { readKept } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { noLinks } from "../../lab/support/picture-turn.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { startImageGateway } from "../support/image-gateway.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

test("nothing in the store names a person after their data was erased", async () => {
  const database = new DatabaseSync(":memory:");
  const platform = fakePlatform();
  const { gateway } = await startImageGateway();
  const adapter = { ...platform.adapter, openAttachment: async () => ReadableStream.from([PNG]) };
  const { accept, handle, idle, channel, looking } = startEngine({
    gateway,
    database,
    platform,
    adapterOf: () => adapter,
    // A real id contains no one's name.
    pseudonym: () => "somebody",
    model: "sandbox-chat",
    imageModel: "sandbox-image",
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
  });
  const author = { id: "canary-person", name: "Canary" };
  const ref: AttachmentRef = { platform: "test", id: "upload", name: "a.png", sizeBytes: 100, isFleeting: true };
  await accept(message("hello", { author }));
  await accept(message("hello", { author: ben, conversationId: "test:b" }));
  await accept({ ...command("imagine", "a fox", { author }), attachments: [ref] });
  await accept(command("persona", "be brief", { author }));
  await looking.note({ platform: "test", authorId: author.id }, "canary-channel");
  await idle();
  const answer = channel.find(({ draft }) => draft.buttons.some(({ turnId }) => turnId.endsWith(".1")));
  await handle(action("stop", `${answer?.draft.buttons[0]?.turnId.replace(/\.1$/, "")}.0`, { author }));
  const left = async (words: string) => (await readKept(database)).filter((entry) => entry.includes(words));
  expect(await left("canary")).not.toEqual([]);
  expect(await left("copies:")).not.toEqual([]);
  await handle(command("forget", "me for good", { author, conversationId: "test:c" }));
  expect(await left("canary")).toEqual([]);
  expect(await left("copies:")).toEqual([]);
});
