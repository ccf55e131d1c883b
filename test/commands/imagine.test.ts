import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command } from "../../lab/support/events.ts";

test("the list of commands contains /imagine", async () => {
  const { accept, idle, texts } = startEngine();
  await accept(command("help"));
  await idle();
  expect(texts()[0]).toContain("`/imagine`: Create an image from words");
});
