import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { ada, command } from "../../lab/support/events.ts";

test("/listen shows everyone the setting, and only the channel's managers can change it, for every process", async () => {
  const { handle, texts, isListening } = startEngine();
  const here = { platform: "test", channelId: "general" };
  for (const event of [
    command("listen"),
    command("listen", "on", { author: { ...ada, mayConfigure: false } }),
    command("listen", "on"),
    command("listen"),
  ]) {
    await handle(event);
  }
  expect(texts()).toEqual([
    expect.stringMatching(/^In this channel, I answer only when I'm mentioned/),
    "Only this channel's managers can change that.",
    expect.stringMatching(/^From now on, I'll answer every message/),
    expect.stringMatching(/^From now on, I'll answer every message/),
  ]);
  expect(await isListening(here)).toBe(true);
  expect(await isListening({ ...here, channelId: "another" })).toBe(false);
  await handle(command("listen", "OFF"));
  expect(await isListening(here)).toBe(false);
});
