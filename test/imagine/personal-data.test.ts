import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command } from "../../lab/support/events.ts";
import { fakePlatform, type Shown } from "../../lab/support/fake-platform.ts";
import type { CommandEvent } from "../../src/port/events.ts";
import { type Meet, startImageGateway } from "../support/image-gateway.ts";

async function start({ meet }: { meet?: Meet } = {}) {
  const platform = fakePlatform();
  const { gateway, references, calls } = await startImageGateway(platform.findFile, { ...(meet && { meet }) });
  const models = { model: "sandbox-chat", imageModel: "sandbox-image" };
  return { ...startEngine({ gateway, references, platform, ...models }), calls };
}

const imagine = (text: string, more: Partial<CommandEvent> = {}): CommandEvent => ({
  ...command("imagine", text),
  ...more,
});
const pictures = (channel: readonly Shown[]) => channel.filter(({ files }) => files.length > 0);
const idOf = (shown: Shown | undefined) => shown?.draft.buttons[0]?.turnId ?? "";

describe("the image requests of a person", () => {
  test("/export contains a person's image requests", async () => {
    const { accept, idle, channel } = await start();
    await accept(imagine("a fox"));
    await idle();
    const shown = channel[0]?.id;
    await accept(command("export"));
    await idle();
    const [file] = channel.at(-1)?.files ?? [];
    const { pictures: own } = JSON.parse(Buffer.from(file?.bytes ?? []).toString()) as { pictures: unknown[] };
    expect(own).toMatchObject([{ prompt: "a fox", model: "sandbox-image", messageIds: [shown] }]);
  });

  test("/export and /forget of other people leave a private image request to its person", async () => {
    const { accept, idle, channel, history } = await start();
    const reply = { platform: "test", channelId: "general", visibleTo: "ada" };
    await accept(imagine("a fox", { reply }));
    await idle();
    expect(pictures(channel)).toHaveLength(1);
    expect(await history.isNew("test:a")).toBe(true);
  });
});

describe("/forget me", () => {
  test("/forget me removes waiting image requests", async () => {
    const gate = Promise.withResolvers<void>();
    const { accept, idle, until, texts, calls } = await start({ meet: () => gate.promise });
    for (const prompt of ["one", "two", "three"]) await accept(imagine(prompt));
    await until(() => texts().some((text) => text.startsWith("Waiting")) && texts().length === 3);
    await accept(command("forget", "me for good", { conversationId: "test:b" }));
    await idle();
    gate.resolve();
    expect(texts()).toEqual([expect.stringContaining("I no longer know anything about you")]);
    expect(calls.length).toBeLessThanOrEqual(2);
  });

  test("/forget me ends the person's image turns, and erases their requests", async () => {
    const gate = Promise.withResolvers<void>();
    const meet: Meet = async (_, index) => (index === 0 ? undefined : gate.promise);
    const { accept, idle, channel, until, imagineMenu } = await start({ meet });
    await accept(imagine("a fox"));
    await idle();
    const id = idOf(channel[0]);
    await accept(imagine("a secret"));
    await until(() => channel.length === 2);
    await accept(command("forget", "me for good", { conversationId: "test:b" }));
    await idle();
    gate.resolve();
    expect(await imagineMenu.describe(id, command("imagine"), new AbortController().signal)).toBeUndefined();
    expect(channel.map(({ draft }) => draft.markdown).join()).not.toContain("secret");
  });
});
