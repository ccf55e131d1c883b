import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { acceptElsewhere, startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { defineTool } from "../../src/tools/tool.ts";

const held = () => Promise.withResolvers<void>();

describe.skipIf(isOnRedis)("the crash of a process", () => {
  test("after a crash, the next process completes the answer in the same message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => platform.channel.length === 1);
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
    expect(platform.channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("after a crash, the next process keeps the sources that the answer had already cited", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const source = { url: "https://a.example/", title: "A", marks: [1] };
    const beginning = `${"So far, so good, says the page. ".repeat(3)}[1] And`;
    const first = startEngine({ database, platform, scripts: [[{ sources: [source] }, beginning, held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => platform.channel.length === 1);
    // The model repeats its last words.
    const rest = `${beginning.slice(-50)} then it rained.`;
    const second = startEngine({ database, platform, scripts: [[rest]] });
    await second.idle();
    const linked = `${beginning} then it rained.`.replace("[1]", "[[1]](https://a.example/)");
    expect(platform.texts()).toEqual([`${linked}\n\n-# Sources:\n-# 1. [A](https://a.example/)`]);
  });

  test("after a crash, the next process lists the page that a tool had read", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const read = defineTool({
      name: "read",
      description: "Reads.",
      schema: z.object({}),
      timeoutMs: 60_000,
      run: async () => ({ text: "rain", sources: [{ url: "https://a.example/", title: "" }] }),
      describeCall: () => "reading",
    });
    const call = { index: 0, id: "c", type: "function" as const, function: { name: "read", arguments: "{}" } };
    const scripts = [[{ tool_calls: [call] }], ["It", held().promise]];
    const first = startEngine({ database, platform, scripts, tools: [read] });
    await first.accept(message("Hello"));
    await platform.until(() => platform.channel.length === 1);
    const second = startEngine({ database, platform, scripts: [["It rains."]], tools: [read] });
    await second.idle();
    expect(platform.texts()).toEqual(["It rains.\n\n-# Sources:\n-# 1. [a.example](https://a.example/)"]);
  });

  test("after a crash while a message says that the bot waits, the next process writes the answer into that message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform({ tellsWaits: true })];
    const first = startEngine({ database, platform, scripts: [[held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => /waiting for the model/i.test(platform.texts()[0] ?? ""));
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
    expect(platform.channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("a crash between a post and its record leaves no second message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    await first.records.forget("test", question.author.id);
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
  });

  test("after a crash between the end of an answer and the end of its event, the next process does not ask the model again", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform });
    const question = await first.handle(message("Hello"));
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.texts()).toEqual(["Hello."]);
  });

  test("after a crash between the end of an answer and the end of its event, the next process answers the later messages", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["First."]] });
    const [question, next] = [message("one"), message("two")];
    await first.handle(question);
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    await acceptElsewhere(database, next);
    const second = startEngine({ database, platform, scripts: [["Second."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["First.", "Second."]);
  });

  test("after a crash, the next process answers the started messages together, and then the later messages", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("one"));
    await platform.until(() => platform.channel.length === 1);
    const later = message("two");
    await first.accept(later);
    const second = startEngine({ database, platform, scripts: [["First."], ["Second."]] });
    await second.handle(edited(later, "two, changed"));
    expect(platform.texts()).toEqual(["First.", "Second."]);
    expect(second.requests[1]?.messages.at(-1)?.content).toBe("two, changed");
  });

  test("after a crash, an answer that a person stopped stays stopped", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    // Another process received this Stop and died before it could act.
    await acceptElsewhere(database, action("stop", toTurnId(question.key)));
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.channel[0]?.draft).toMatchObject({
      streaming: false,
      markdown: expect.stringContaining("stopped this answer"),
    });
  });

  test("after a crash, the next process leaves a deleted question out of the combined answer", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const hold = held();
    const first = startEngine({
      database,
      platform,
      scripts: [
        [hold.promise, "zero"],
        ["both", held().promise],
      ],
    });
    await first.accept(message("zero"));
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await first.accept(kept);
    await first.accept(unwanted);
    hold.resolve();
    await platform.until(() => platform.channel.length === 2);
    await acceptElsewhere(database, deleted(unwanted));
    const second = startEngine({ database, platform, scripts: [["one"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["zero", "one"]);
    expect(second.requests[0]?.messages.at(-1)?.content).toBe("kept");
  });

  test("after a crash between a post and its record, no message keeps the old text", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform({ maxLength: 200 })];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    const record = await first.records.load(toTurnId(question.key));
    if (record === undefined) throw new Error("a turn that runs has a record");
    await first.records.save({ ...record, posted: [], phase: "received" });
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    const second = startEngine({ database, platform, scripts: [[words]] });
    await second.idle();
    expect(platform.texts().join(" ")).toBe(words);
    expect(platform.channel.every(({ draft }) => !draft.streaming)).toBe(true);
  });

  test("after a crash, the next process answers the accepted questions that had not started", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [[held().promise]] });
    await first.accept(message("one"));
    await first.accept(message("two", { author: ben }));
    const second = startEngine({ database, platform, scripts: [["first"], ["second"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["first", "second"]);
  });
});

describe.skipIf(isOnRedis)("a question or image that kills its process each time", () => {
  const never = new Promise<never>(() => {});

  /**
   * Starts an engine, lets the work begin, and "dies" during the work: nothing is closed, and the engine does nothing
   * more.
   */
  async function dieOn(event: InboundEvent, deaths: number) {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    for (let death = 0; death < deaths; death++) {
      const begun = held();
      const gateway = {
        streamChat: () => {
          begun.resolve();
          return never;
        },
        generateImage: () => {
          begun.resolve();
          return never;
        },
        listModels: () => never,
        close: async () => {},
      };
      const { accept } = startEngine({ database, platform, gateway, imageModel: "painter" });
      if (death === 0) await accept(event);
      await begun.promise;
    }
    const last = startEngine({ database, platform, imageModel: "painter", scripts: [["At last."]] });
    await last.idle();
    return { ...platform, requests: last.requests, metrics: last.metrics };
  }

  test("the bot tries a question that kills its process five times", async () => {
    const { texts, requests } = await dieOn(message("Deadly?"), 5);
    expect(texts()).toEqual(["At last."]);
    expect(requests).toHaveLength(1);
  });

  test("a question that kills its process ends in one sentence after five tries, with Retry", async () => {
    const { channel, requests, metrics } = await dieOn(message("Deadly?"), 6);
    expect((await metrics.render()).body).toContain("palaver_given_up_total 1\n");
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(channel[0]?.draft.markdown).toContain("I tried several times");
    expect(requests).toEqual([]);
  });

  test("an image that kills its process ends in one sentence after five tries", async () => {
    const { channel } = await dieOn(command("imagine", "a fox"), 6);
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft.markdown).toContain("I tried several times");
  });
});
