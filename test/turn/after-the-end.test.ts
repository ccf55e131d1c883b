import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis, readKept } from "../../lab/support/bot-store.ts";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import type { Button } from "../../src/port/sink.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

const held = () => Promise.withResolvers<void>();

const tool = toTool("look", async () => "a secret result", { acts: true });
const look = toCall("look", { at: "a secret argument" });

/** An engine on a platform that shows all buttons. */
function start({ maxLength, ...options }: EngineOptions & { maxLength?: number } = {}) {
  const platform = fakePlatform({ maxLength, traits: { secondThoughts: true } });
  const engine = startEngine({ platform, ...options });
  const buttons = (index = 0): readonly Button[] => engine.channel[index]?.draft.buttons ?? [];
  return {
    ...engine,
    platform,
    buttons,
    labels: (index = 0) => buttons(index).map(({ label }) => label),
    async press(label: string, author = ada) {
      const found = engine.channel.flatMap(({ draft }) => draft.buttons).find((button) => button.label === label);
      if (found === undefined || found.action === "edit") throw new Error(`there is no button ${label}`);
      const event = await engine.handle(action(found.action, found.turnId, { author }));
      return event;
    },
  };
}

describe("an edit of an answered question", () => {
  test("an edit leaves the new answer in the history if it needs fewer messages", async () => {
    const long = Array.from({ length: 40 }, (_, index) => `word${index} `).join("");
    const { accept, handle, texts, channel, requests } = start({
      maxLength: 200,
      scripts: [[long], ["Short."], ["Later."]],
    });
    const question = await handle(message("Tell me all."));
    const ids = channel.map(({ id }) => id);
    expect(ids).toHaveLength(2);
    await handle(edited(question, "Tell me little."));
    expect(texts()).toEqual(["Short."]);
    await accept(deleted({ ...question, messageId: ids[1] ?? "" }));
    await handle(message("And then?"));
    expect(requests[2]?.messages.slice(1).map(({ content }) => content)).toEqual([
      "Tell me little.",
      "Short.",
      "And then?",
    ]);
  });

  test("an edited question is answered again in the same message, and the first answer stays reachable", async () => {
    const { handle, texts, labels, press, requests, violations } = start({
      scripts: [["Paris."], ["Rome."], ["Later."]],
    });
    const question = await handle(message("The capital of France?"));
    await handle(edited(question, "The capital of Italy?"));
    expect(texts()).toEqual(["Rome."]);
    expect(labels()).toEqual(["‹ 2/2", "Regenerate", "What did you see?", "Good answer", "Bad answer"]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("The capital of Italy?");
    await press("‹ 2/2");
    expect(texts()).toEqual(["Paris.\n\n_Answer 1 of 2, an earlier version._"]);
    expect(labels()).toEqual(["1/2 ›"]);
    await handle(message("And then?"));
    expect(requests[2]?.messages.slice(1).map(({ content }) => content)).toEqual([
      "The capital of Italy?",
      "Rome.",
      "And then?",
    ]);
    await press("1/2 ›");
    expect(texts()[0]).toBe("Rome.");
    expect(labels()[0]).toBe("‹ 2/2");
    expect(violations).toEqual([]);
  });

  test("an edit without a change, or of a message without an answer, asks nothing", async () => {
    const { accept, handle, requests, texts } = start();
    const question = await handle(message("Hello"));
    await accept(edited(question, "Hello"));
    const between = message("Lunch?", { author: ben, addressed: "open", conversationId: "test:b" });
    await accept(between);
    await handle(edited(between, "Dinner?"));
    expect([requests.length, texts()]).toEqual([1, ["Hello."]]);
  });

  test.skipIf(isOnRedis)("the next process asks an edited question that a killed process did not ask", async () => {
    const database = new DatabaseSync(":memory:");
    const question = message("The capital of France?");
    const first = start({ database, scripts: [["Paris."], [held().promise]] });
    await first.handle(question);
    await first.accept(edited(question, "The capital of Italy?"));
    while (first.requests.length < 2) await new Promise(setImmediate);
    // The process hangs like a killed one.
    first.setTrouble(() => held().promise);
    const second = start({ database, platform: first.platform, scripts: [["Rome."]] });
    first.setTrouble(() => undefined);
    await second.idle();
    expect(second.texts()).toEqual(["Rome."]);
    expect(second.labels()[0]).toBe("‹ 2/2");
  });
});

describe("Regenerate", () => {
  test("Regenerate asks again, once however often it is pressed, and the model does not see the old answer", async () => {
    const { handle, texts, press, requests, labels } = start({ scripts: [["One."], ["Two."], ["Three."]] });
    await handle(message("Count"));
    const pressed = await press("Regenerate");
    expect(texts()).toEqual(["Two."]);
    await handle(action("regenerate", pressed.turnId));
    expect(texts()).toEqual(["Two."]);
    expect(requests[1]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "Count"]);
    await press("Regenerate");
    expect(labels().slice(0, 1)).toEqual(["‹ 3/3"]);
    await press("‹ 3/3");
    expect([texts(), labels()]).toEqual([["Two.\n\n_Answer 2 of 3, an earlier version._"], ["‹ 2/3", "›"]]);
  });

  test("a failed Regenerate keeps the former answer and offers a Retry", async () => {
    const down = new GatewayError("unreachable", "no");
    const { handle, texts, press, labels, history } = start({ scripts: [["One."], [down], ["Two."]] });
    await handle(message("Count"));
    await press("Regenerate");
    expect(texts()[0]).toMatch(/^One\.\n\n_.*Retry/);
    expect(labels()).toEqual(["Retry", "What did you see?"]);
    const kept = async () => (await history.read("test:a", { maxEntries: 1 })).entries[0];
    expect(await kept()).toMatchObject({ messages: [{ content: "One." }], partial: false });
    await press("Retry");
    expect(texts()).toEqual(["Two."]);
    expect(await kept()).toMatchObject({ edition: 2, former: [{ edition: 1, messages: [{ content: "One." }] }] });
  });

  test("only the asker can regenerate an answer and browse the answers", async () => {
    const { handle, texts, press } = start({ scripts: [["One."], ["Two."]] });
    await handle(message("Count"));
    await press("Regenerate", ben);
    expect(texts()).toEqual(["One.", "Only the person who asked, or a moderator, can do that."]);
    await press("Regenerate");
    await press("‹ 2/2", ben);
    expect(texts()[0]).toBe("Two.");
  });

  test("a question keeps its newest five answers, and its buttons lead through those of any length", async () => {
    const long = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    const scripts = [["0."], [long], ["2."], ["3."], ["4."], ["5."]];
    const { handle, texts, press, labels, violations } = start({ scripts, maxLength: 200 });
    await handle(message("Count"));
    for (const _ of scripts.slice(1)) await press("Regenerate");
    expect([texts(), labels()[0]]).toEqual([["5."], "‹ 5/5"]);
    for (const place of ["5/5", "4/5", "3/5", "2/5"]) await press(`‹ ${place}`);
    expect(texts().join(" ")).toBe(`${long}\n\n_Answer 1 of 5, an earlier version._`);
    await press("1/5 ›");
    expect(texts()).toEqual(["2.\n\n_Answer 2 of 5, an earlier version._"]);
    expect(violations).toEqual([]);
  });

  test("/forget erases all answers of a question, and their calls", async () => {
    const database = new DatabaseSync(":memory:");
    const scripts = [["A secret round.", look], ["A secret."], ["Another secret."]];
    const { handle, press } = start({ database, tools: [tool], scripts });
    await handle(message("my secret"));
    await press("Regenerate");
    await handle(command("forget", "me for good"));
    expect((await readKept(database)).join("\n")).not.toMatch(/secret|\bada\b/i);
  });
});

describe("the deletion of an answered question", () => {
  test("deleting an answered question offers to delete its answer", async () => {
    const { handle, texts, labels, press, history } = start({ scripts: [["Paris."]] });
    const question = await handle(message("The capital of France?"));
    await handle(deleted(question));
    expect([texts(), labels()]).toEqual([["Paris.\n\n_The question was deleted._"], ["Delete this answer"]]);
    await press("Delete this answer", ben);
    expect(texts()[1]).toMatch(/^Only the person who asked/);
    await press("Delete this answer");
    expect(texts()).toHaveLength(1);
    expect((await history.read("test:a", { maxEntries: 9 })).entries).toEqual([]);
  });

  test("deleting a question erases its tool calls, its explanation and its ratings", async () => {
    const database = new DatabaseSync(":memory:");
    const scripts = [["A secret round.", look], ["A secret answer."]];
    const { handle, texts, press, records } = start({ database, tools: [tool], scripts });
    const question = await handle(message("What is there?"));
    const turnId = toTurnId(question.key);
    await records.rate({ id: turnId, edition: 1 }, "ben", "bad", "a secret reason");
    expect((await records.load(turnId))?.trace).toBeDefined();
    await handle(deleted(question));
    await press("Delete this answer");
    expect(texts()).toEqual([]);
    expect((await records.load(turnId))?.trace).toBeUndefined();
    expect((await readKept(database)).join("\n")).not.toContain("secret");
  });

  test("an answer whose question was deleted still says that it is incomplete", async () => {
    const { accept, handle, idle, texts, labels, press, until } = start({ scripts: [["Par", held().promise]] });
    const question = message("The capital of France?");
    await accept(question);
    await until(() => texts().some((text) => text.startsWith("Par")));
    await press("Stop");
    await idle();
    await handle(deleted(question));
    const words = "Par\n\n_The question was deleted. This answer is incomplete._";
    expect([texts(), labels()]).toEqual([[words], ["Delete this answer"]]);
  });

  test("deleting a question deletes its answer if that is configured", async () => {
    const { handle, texts, history } = start({ removesWithQuestion: true });
    const question = await handle(message("Hello"));
    await handle(deleted(question));
    expect(texts()).toEqual([]);
    expect((await history.read("test:a", { maxEntries: 9 })).entries).toEqual([]);
  });

  test("deleting one of several questions that were answered together keeps the answer", async () => {
    const hold = held();
    const { accept, handle, idle, texts, requests } = start({ scripts: [[hold.promise, "first"], ["both"]] });
    await accept(message("zero"));
    while (requests.length === 0) await new Promise(setImmediate);
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await accept(kept);
    await accept(unwanted);
    hold.resolve();
    await idle();
    await handle(deleted(unwanted));
    expect(texts()).toEqual(["first", "both"]);
  });
});

describe("a question that has to wait", () => {
  test("the bot marks a waiting question until its turn, and answers it below all parts of the previous answer", async () => {
    const hold = held();
    const words = Array.from({ length: 90 }, (_, index) => `word${index}`).join(" ");
    const engine = start({ scripts: [["Begin ", hold.promise, words], ["Second."]], maxLength: 200 });
    const { accept, idle, texts, platform, until } = engine;
    const marks: Array<[id: string, isWaiting: boolean]> = [];
    const marked = held();
    platform.sink.markWaiting = async (id, isWaiting) => {
      marks.push([id, isWaiting]);
      marked.resolve();
      return true;
    };
    await accept(message("Write a lot"));
    await until(() => texts().length === 1);
    const second = message("And me?", { author: ben });
    await accept(second);
    await accept(message("Lunch?", { author: ben, addressed: "other" }));
    await marked.promise;
    expect(marks).toEqual([[second.messageId, true]]);
    hold.resolve();
    await idle();
    expect(marks).toEqual([
      [second.messageId, true],
      [second.messageId, false],
    ]);
    expect(texts().length).toBeGreaterThan(3);
    expect(texts().slice(0, -1).join(" ")).toBe(`Begin ${words}`);
    expect(texts().at(-1)).toBe("Second.");
  });

  test.skipIf(isOnRedis)(
    "the bot removes the mark of a waiting question even if another process answers it",
    async () => {
      const database = new DatabaseSync(":memory:");
      const platform = fakePlatform();
      const marks: boolean[] = [];
      const marked = held();
      platform.sink.markWaiting = async (_, isWaiting) => {
        marks.push(isWaiting);
        marked.resolve();
        return true;
      };
      const first = startEngine({ database, platform, scripts: [[held().promise]] });
      await first.accept(message("One"));
      while (first.requests.length === 0) await new Promise(setImmediate);
      await first.accept(message("Two", { author: ben }));
      await marked.promise;
      const second = startEngine({ database, platform });
      await second.idle();
      expect(marks).toEqual([true, false]);
    },
  );

  test("a waiting question has no mark if the platform rejects the mark, and loses a mark that the platform sets late", async () => {
    const hold = held();
    const engine = start({ scripts: [["Begin ", hold.promise], ["Second."], ["Third."]] });
    const { accept, idle, texts, platform, until } = engine;
    const marks: Array<[id: string, isWaiting: boolean]> = [];
    const marked = [held(), held(), held(), held()];
    const allowed = [false, true, false, true];
    platform.sink.markWaiting = async (id, isWaiting) => {
      marked[marks.length]?.resolve();
      marks.push([id, isWaiting]);
      return allowed[marks.length - 1] ?? true;
    };
    await accept(message("One"));
    await until(() => texts().length === 1);
    const second = message("Two", { author: ben });
    const third = message("Three", { author: ben });
    await accept(second);
    await marked[0]?.promise;
    await accept(third);
    await marked[1]?.promise;
    hold.resolve();
    await idle();
    await marked[3]?.promise;
    expect(marks).toEqual([
      [second.messageId, true],
      [third.messageId, true],
      [third.messageId, false],
      [third.messageId, false],
    ]);
  });
});
