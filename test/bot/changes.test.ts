import { describe, expect, test } from "vitest";
import { startEngine } from "../support/engine.ts";
import { ben, deleted, edited, message } from "../support/events.ts";
import { eventually } from "../support/eventually.ts";

const held = () => Promise.withResolvers<void>();

describe("a deletion that comes before its message", () => {
  test("leaves nothing to be answered, and the other messages to be", async () => {
    const { accept, idle, texts, requests } = startEngine({ scripts: [["Tea."]] });
    const question = message("Never mind");
    await accept(deleted(question));
    await idle();
    await accept(question);
    await idle();
    expect(texts()).toEqual([]);
    await accept(message("What to drink?"));
    await idle();
    expect(texts()).toEqual(["Tea."]);
    expect(JSON.stringify(requests)).not.toContain("Never mind");
  });

  test("leaves it out of what is answered together", async () => {
    const hold = held();
    const { accept, idle, texts, requests, until, channel } = startEngine({
      scripts: [["Soup", hold.promise], ["Tea."]],
    });
    await accept(message("What to eat?"));
    await until(() => channel.length === 1);
    const question = message("Never mind");
    for (const event of [deleted(question), question, message("What to drink?")]) await accept(event);
    hold.resolve();
    await idle();
    expect(texts()).toEqual(["Soup", "Tea."]);
    expect(JSON.stringify(requests[1])).toContain("What to drink?");
    expect(JSON.stringify(requests)).not.toContain("Never mind");
  });
});

describe("an edit", () => {
  test("that makes a message one to the bot has it answered, once and only where it was not", async () => {
    const { accept, idle, texts, requests } = startEngine({ scripts: [["Soup."], ["Salad."], ["Tea."]] });
    const open = message("Soup or salad?", { addressed: "open" });
    await accept(open);
    await idle();
    expect(requests).toHaveLength(0);
    const asked = { ...edited(open, "Bot, soup or salad?"), addressed: "bot" as const };
    await accept(asked);
    await accept(asked);
    await idle();
    expect(texts()).toEqual(["Soup."]);
    expect(requests[0]?.messages.at(-1)?.content).toBe("Bot, soup or salad?");
    await accept({ ...edited(open, "Bot, and now?"), addressed: "bot" });
    await idle();
    expect(texts()).toEqual(["Salad."]);
    await accept(message("And to drink?", { addressed: "open" }));
    await idle();
    expect(texts()).toEqual(["Salad.", "Tea."]);
  });

  test("of the message that is being answered begins the answer again in the same message", async () => {
    const { accept, idle, texts, channel, until, requests, violations } = startEngine({
      scripts: [["Wrong", held().promise], ["Right"]],
    });
    const question = message("Helo");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(edited(question, "Hello"));
    await idle();
    expect(texts()).toEqual(["Right"]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("Hello");
    expect(violations).toEqual([]);
  });

  test("that comes while the end of the answer is being written still begins it again", async () => {
    const [rest, slow] = [held(), held()];
    const { accept, idle, texts, channel, setTrouble, until, calls, openStreams } = startEngine({
      scripts: [["Wrong", rest.promise], ["Right"]],
    });
    setTrouble((call) => (call === "edit" ? slow.promise : undefined));
    const question = message("Helo");
    await accept(question);
    await until(() => channel.length === 1);
    rest.resolve();
    while (!calls.includes("edit") || openStreams() > 0) await new Promise(setImmediate);
    await accept(edited(question, "Hello"));
    slow.resolve();
    await idle();
    expect(texts()).toEqual(["Right"]);
  });

  test("that changes nothing leaves the answer alone", async () => {
    const hold = held();
    const { accept, idle, channel, until, requests } = startEngine({ scripts: [["So far", hold.promise]] });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(edited(question, "Hello"));
    hold.resolve();
    await idle();
    expect(requests).toHaveLength(1);
  });

  test("of an answered message is read by the model next time", async () => {
    const { accept, idle, requests } = startEngine();
    const question = message("I like tea");
    await accept(question);
    await idle();
    await accept(edited(question, "I like coffee"));
    await accept(message("What do I like?"));
    await idle();
    expect(requests[1]?.messages[1]?.content).toBe("I like coffee");
  });
});

describe("a deletion", () => {
  test("of the message that is being answered cancels the answer and takes it back", async () => {
    const { accept, idle, texts, channel, until, openStreams, history } = startEngine({
      scripts: [["So far", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(deleted(question));
    await idle();
    expect(texts()).toEqual([]);
    expect(openStreams()).toBe(0);
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("of a message that still waits means that it is never answered", async () => {
    const hold = held();
    const { accept, idle, texts } = startEngine({ scripts: [[hold.promise, "first"], ["second"]] });
    await accept(message("one"));
    const unwanted = message("two", { author: ben });
    await accept(unwanted);
    await accept(deleted(unwanted));
    hold.resolve();
    await idle();
    expect(texts()).toEqual(["first"]);
  });

  test("takes back also a message whose post seemed to fail", async () => {
    const refused = held();
    const { accept, idle, channel, setTrouble } = startEngine({ scripts: [["So far", held().promise]] });
    let first = true;
    setTrouble((call) => {
      if (call !== "post" || !first) return undefined;
      first = false;
      refused.resolve();
      return { kind: "unavailable", written: true };
    });
    const question = message("Hello");
    await accept(question);
    await refused.promise;
    await new Promise(setImmediate);
    await accept(deleted(question));
    await idle();
    expect(channel).toEqual([]);
  });

  test("is tried again until the platform takes the answer back", async () => {
    const { accept, idle, texts, channel, until, setTrouble } = startEngine({ scripts: [["So far", held().promise]] });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    let failures = 3;
    setTrouble((call) => (call === "remove" && failures-- > 0 ? { kind: "unavailable" } : undefined));
    await accept(deleted(question));
    await idle();
    expect(texts()).toEqual([]);
  });

  test("is tried again also where the answer is written once more because of an edit", async () => {
    const { accept, idle, texts, until, setTrouble } = startEngine({
      scripts: [["One answer"], ["Another", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(edited(question, "Hello again"));
    await until(() => texts()[0] === "Another");
    let failures = 3;
    setTrouble((call) => (call === "remove" && failures-- > 0 ? { kind: "unavailable" } : undefined));
    await accept(deleted(question));
    await idle();
    expect(texts()).toEqual([]);
  });

  test("of one of several messages answered together begins the answer again without it", async () => {
    const hold = held();
    const { accept, idle, texts, channel, until, requests } = startEngine({
      scripts: [[hold.promise, "first"], ["both", held().promise], ["one"]],
    });
    await accept(message("zero"));
    await eventually(() => requests.length).toBe(1);
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await accept(kept);
    await accept(unwanted);
    hold.resolve();
    await until(() => channel.length === 2);
    await accept(deleted(unwanted));
    await idle();
    expect(texts()).toEqual(["first", "one"]);
    expect(requests[2]?.messages.at(-1)?.content).toBe("kept");
  });

  test("of the reply by a person ends the answer: nothing is posted again", async () => {
    const hold = held();
    const { accept, idle, channel, until, calls, openStreams } = startEngine({
      scripts: [["So far", hold.promise, " and more", held().promise]],
    });
    await accept(message("Hello"));
    await until(() => channel.length === 1);
    channel.splice(0);
    hold.resolve();
    await idle();
    expect(openStreams()).toBe(0);
    expect(calls.filter((name) => name === "post")).toHaveLength(1);
    expect(channel).toEqual([]);
  });
});
