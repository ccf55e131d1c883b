import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { acceptElsewhere, type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { command, deleted, edited, message } from "../../lab/support/events.ts";
import type { Step } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

const held = () => Promise.withResolvers<void>();

interface Dying extends Pick<EngineOptions, "platform" | "tools"> {
  isOver?(texts: string[]): boolean;
}

describe.skipIf(isOnRedis)("the crash of a process", () => {
  /** A process that "dies" when its platform looks like this. `goOn` is the next process. */
  async function die(scripts: Step[][], { isOver = (texts: string[]) => texts.length > 0, ...given }: Dying = {}) {
    const [database, platform] = [new DatabaseSync(":memory:"), given.platform ?? fakePlatform()];
    const common = { database, platform, tools: given.tools ?? [] };
    const first = startEngine({ ...common, scripts });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => isOver(platform.texts()));
    const goOn = async (...next: Step[][]) => {
      const second = startEngine({ ...common, scripts: next });
      await second.idle();
      return second;
    };
    return { ...platform, database, first, question, goOn };
  }
  const BEGINNING: Step[][] = [["So f", held().promise]];

  test("after a crash, the next process lists the page that a tool had read", async () => {
    const sources = [{ url: "https://a.example/", title: "" }];
    const read = toTool("read", async () => ({ text: "rain", sources }));
    const { goOn, texts } = await die([[toCall("read")], ["It", held().promise]], { tools: [read] });
    await goOn(["It rains."]);
    expect(texts()).toEqual(["It rains.\n\n-# Sources:\n-# 1. [a.example](https://a.example/)"]);
  });

  test("after a crash while a message says that the bot waits, the next process writes the answer into that message", async () => {
    const platform = fakePlatform({ traits: { waits: "soon" } });
    const isOver = ([text = ""]: string[]) => /waiting for the model/i.test(text);
    const { goOn, texts, channel } = await die([[held().promise]], { platform, isOver });
    await goOn(["So far, so good."]);
    expect(texts()).toEqual(["So far, so good."]);
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("a crash between a post and its record leaves no second message", async () => {
    const { first, question, goOn, texts } = await die(BEGINNING);
    await first.records.forget("test", question.author.id);
    await goOn(["So far, so good."]);
    expect(texts()).toEqual(["So far, so good."]);
  });

  test("after a crash between the end of an answer and the end of its event, the next process answers the later messages", async () => {
    const { first, database, question, goOn, texts } = await die([["First."]]);
    await first.idle();
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    await acceptElsewhere(database, message("two"));
    await goOn(["Second."]);
    expect(texts()).toEqual(["First.", "Second."]);
  });

  test("after a crash, the next process answers the started messages together, and then the later messages", async () => {
    const { first, database, goOn, texts } = await die(BEGINNING);
    const later = message("two");
    await first.accept(later);
    await acceptElsewhere(database, edited(later, "two, changed"));
    const { requests } = await goOn(["First."], ["Second."]);
    expect(texts()).toEqual(["First.", "Second."]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("two, changed");
  });

  test("after a crash, the next process leaves a deleted question out of the combined answer", async () => {
    const hold = held();
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    const { first, database, goOn, texts, until } = await die([
      ["zero", hold.promise],
      ["both", held().promise],
    ]);
    for (const event of [kept, unwanted]) await first.accept(event);
    hold.resolve();
    await until(() => texts().length === 2);
    await acceptElsewhere(database, deleted(unwanted));
    const { requests } = await goOn(["one"]);
    expect(texts()).toEqual(["zero", "one"]);
    expect(requests[0]?.messages.at(-1)?.content).toBe("kept");
  });

  test("after a crash between a post and its record, no message keeps the old text", async () => {
    const { first, question, goOn, texts, channel } = await die(BEGINNING, {
      platform: fakePlatform({ maxLength: 200 }),
    });
    const record = await first.records.load(toTurnId(question.key));
    if (record === undefined) throw new Error("a turn that runs has a record");
    await first.records.save({ ...record, posted: [], phase: "received" });
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    await goOn([words]);
    expect(texts().join(" ")).toBe(words);
    expect(channel.every(({ draft }) => !draft.streaming)).toBe(true);
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

  test.each([
    ["a question", message("Deadly?")],
    ["an image", command("imagine", "a fox")],
  ])("%s that kills its process ends in one sentence after five tries, with Retry", async (_, event) => {
    const { channel, requests, metrics } = await dieOn(event, 6);
    expect((await metrics.render()).body).toContain("palaver_given_up_total 1\n");
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(channel[0]?.draft.markdown).toContain("I tried several times");
    expect(requests).toEqual([]);
  });
});
