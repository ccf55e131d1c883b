import { expect, test } from "vitest";
import { createImagineCommand } from "../../src/commands/imagine.ts";
import { startEngine } from "../support/engine.ts";
import { command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

test("/imagine answers in words only when nothing can be drawn", async () => {
  const { sink, texts } = fakePlatform();
  const { signal } = new AbortController();
  const refusals = [undefined, "No."];
  const imagine = createImagineCommand({ request: async () => refusals.shift() });
  await imagine.run(command("imagine", "a fox"), sink, signal);
  expect(texts()).toEqual([]);
  await imagine.run(command("imagine", "a fox"), sink, signal);
  expect(texts()).toEqual(["No."]);
});

test("/help tells of /imagine", async () => {
  const { accept, idle, texts } = startEngine();
  await accept(command("help"));
  await idle();
  expect(texts()[0]).toContain("`/imagine`: Draws a picture from words");
});
