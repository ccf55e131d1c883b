import { expect, test } from "vitest";
import { startEngine } from "../support/engine.ts";
import { ada, command } from "../support/events.ts";

test("/listen is said and set by those who may settle things in the channel, and is told to the adapters", async () => {
  const { accept, idle, texts, isListening } = startEngine();
  const here = { platform: "test", channelId: "general" };
  for (const event of [
    command("listen"),
    command("listen", "on", { author: { ...ada, mayConfigure: false } }),
    command("listen", "on"),
    command("listen"),
  ]) {
    await accept(event);
    await idle();
  }
  expect(texts()).toEqual([
    expect.stringMatching(/^In this channel I answer only when I am mentioned/),
    "Only people who manage this channel may change that.",
    expect.stringMatching(/^From now on I answer everything/),
    expect.stringMatching(/^From now on I answer everything/),
  ]);
  expect(await isListening(here)).toBe(true);
  expect(await isListening({ ...here, channelId: "another" })).toBe(false);
  await accept(command("listen", "OFF"));
  await idle();
  expect(await isListening(here)).toBe(false);
});
