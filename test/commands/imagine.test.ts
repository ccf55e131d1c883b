import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { command } from "../../lab/support/events.ts";

test("the list of commands contains /imagine", async () => {
  const { handle, texts } = startEngine();
  await handle(command("help"));
  expect(texts()[0]).toContain("`/imagine`: Create an image from words");
});
