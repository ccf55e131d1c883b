import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { startEngine } from "../support/engine.ts";
import { edited, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

describe("an answer that begins again for an edit that came at its very end", () => {
  test("is taken up where the process died in that", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const never = new Promise(() => {});
    const first = startEngine({ database, platform, scripts: [["About tea."], ["About", never]] });
    const writing = Promise.withResolvers<void>();
    first.setTrouble((call) => (call === "post" ? writing.promise : undefined));
    const question = message("tea?");
    await first.accept(question);
    while (!first.calls.includes("post") || first.openStreams() > 0) await new Promise(setImmediate);
    await first.accept(edited(question, "coffee?"));
    first.setTrouble(() => undefined);
    writing.resolve();
    while (first.requests.length < 2) await new Promise(setImmediate);
    // The process "dies" here: nothing of `first` is closed, and its model never says another word.

    const second = startEngine({ database, platform, scripts: [["About coffee."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["About coffee."]);
    expect(second.requests).toHaveLength(1);
  });
});
