import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { openEventTable } from "../../src/queue/embedded/event-table.ts";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command, deleted, edited, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const held = () => Promise.withResolvers<void>();

describe.skipIf(isOnRedis)("a process that dies", () => {
  test("in the middle of an answer is followed by one that completes it in the same message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => platform.channel.length === 1);
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
    expect(platform.channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("while it only tells of a wait is followed by one whose answer takes that message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform({ tellsWaits: true })];
    const first = startEngine({ database, platform, scripts: [[held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => /waiting for the model/i.test(platform.texts()[0] ?? ""));
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
    expect(platform.channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("between a post and its record makes no second message", async () => {
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

  test("between the end of an answer and the end of its event does not ask again", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform });
    const question = message("Hello");
    await first.accept(question);
    await first.idle();
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.texts()).toEqual(["Hello."]);
  });

  test("between the end of an answer and the end of its event still answers what came after it", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["First."]] });
    const [question, next] = [message("one"), message("two")];
    await first.accept(question);
    await first.idle();
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    openEventTable(database).claim(next);
    const second = startEngine({ database, platform, scripts: [["Second."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["First.", "Second."]);
  });

  test("is followed by one that answers the begun messages together, and later ones after them", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("one"));
    await platform.until(() => platform.channel.length === 1);
    const later = message("two");
    await first.accept(later);
    const second = startEngine({ database, platform, scripts: [["First."], ["Second."]] });
    await second.accept(edited(later, "two, changed"));
    await second.idle();
    expect(platform.texts()).toEqual(["First.", "Second."]);
    expect(second.requests[1]?.messages.at(-1)?.content).toBe("two, changed");
  });

  test("after a person pressed Stop is followed by one that stops", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    // Claimed by a process that died before it could act.
    openEventTable(database).claim(action("stop", toTurnId(question.key)));
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.channel[0]?.draft).toMatchObject({
      streaming: false,
      markdown: expect.stringContaining("stopped this answer"),
    });
  });

  test("after one of several questions was deleted is followed by one that no longer knows it", async () => {
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
    openEventTable(database).claim(deleted(unwanted));
    const second = startEngine({ database, platform, scripts: [["one"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["zero", "one"]);
    expect(second.requests[0]?.messages.at(-1)?.content).toBe("kept");
  });

  test("between a post and its record never leaves the text of before", async () => {
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

  test("answers afterwards the questions that were accepted and not begun", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [[held().promise]] });
    await first.accept(message("one"));
    await first.accept(message("two", { author: ben }));
    const second = startEngine({ database, platform, scripts: [["first"], ["second"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["first", "second"]);
  });
});

describe.skipIf(isOnRedis)("work on which the process dies each time", () => {
  const never = new Promise<never>(() => {});

  /** Starts, lets the work begin, and "dies" in it: nothing is closed, and nothing of it says another word. */
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

  test("is taken up five times: a question", async () => {
    const { texts, requests } = await dieOn(message("Deadly?"), 5);
    expect(texts()).toEqual(["At last."]);
    expect(requests).toHaveLength(1);
  });

  test("ends in one sentence after that, with Retry: a question", async () => {
    const { channel, requests, metrics } = await dieOn(message("Deadly?"), 6);
    expect((await metrics.render()).body).toContain("palaver_given_up_total 1\n");
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(channel[0]?.draft.markdown).toContain("I tried several times");
    expect(requests).toEqual([]);
  });

  test("ends in one sentence after that: a picture", async () => {
    const { channel } = await dieOn(command("imagine", "a fox"), 6);
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft.markdown).toContain("Given up");
  });
});
