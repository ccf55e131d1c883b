import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { ben, deleted, edited, message } from "../../lab/support/events.ts";
import { eventually } from "../support/eventually.ts";

const held = () => Promise.withResolvers<void>();

describe("a deletion that comes before its message", () => {
  test("a deletion that arrives before its message excludes it from a combined answer", async () => {
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

describe("an edit of a message", () => {
  test("an edit that addresses a message to the bot gets one answer if the message had none", async () => {
    const { accept, handle, texts, requests } = startEngine({ scripts: [["Soup."], ["Salad."], ["Tea."]] });
    const open = await handle(message("Soup or salad?", { addressed: "open" }));
    expect(requests).toHaveLength(0);
    const asked = { ...edited(open, "Bot, soup or salad?"), addressed: "bot" as const };
    await accept(asked);
    await handle(asked);
    expect(texts()).toEqual(["Soup."]);
    expect(requests[0]?.messages.at(-1)?.content).toBe("Bot, soup or salad?");
    await handle({ ...edited(open, "Bot, and now?"), addressed: "bot" });
    expect(texts()).toEqual(["Salad."]);
    await handle(message("And to drink?", { addressed: "open" }));
    expect(texts()).toEqual(["Salad.", "Tea."]);
  });

  test("an edit that arrives while the bot writes the end of the answer still restarts the answer", async () => {
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
});

describe("a deletion of a message", () => {
  test("the bot never answers a message that was deleted while it waited", async () => {
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

  test("a deletion also removes an answer whose post seemed to fail", async () => {
    const refused = held();
    const { accept, handle, channel, setTrouble } = startEngine({ scripts: [["So far", held().promise]] });
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
    await handle(deleted(question));
    expect(channel).toEqual([]);
  });

  test("the bot retries to remove the answer to a deleted message until the platform removes it", async () => {
    const { accept, handle, texts, channel, until, setTrouble } = startEngine({
      scripts: [["So far", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    let failures = 3;
    setTrouble((call) => (call === "remove" && failures-- > 0 ? { kind: "unavailable" } : undefined));
    await handle(deleted(question));
    expect(texts()).toEqual([]);
  });

  test("the bot retries to remove an answer even if an edit restarts the answer meanwhile", async () => {
    const { accept, handle, texts, until, setTrouble } = startEngine({
      scripts: [["One answer"], ["Another", held().promise]],
    });
    const question = await handle(message("Hello"));
    await accept(edited(question, "Hello again"));
    await until(() => texts()[0] === "Another");
    let failures = 3;
    setTrouble((call) => (call === "remove" && failures-- > 0 ? { kind: "unavailable" } : undefined));
    await handle(deleted(question));
    expect(texts()).toEqual([]);
  });

  test("the bot restarts an answer to several messages without the deleted message", async () => {
    const hold = held();
    const { accept, handle, texts, channel, until, requests } = startEngine({
      scripts: [[hold.promise, "first"], ["both", held().promise], ["one"]],
    });
    await accept(message("zero"));
    await eventually(() => requests.length).toBe(1);
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await accept(kept);
    await accept(unwanted);
    hold.resolve();
    await until(() => channel.length === 2);
    await handle(deleted(unwanted));
    expect(texts()).toEqual(["first", "one"]);
    expect(requests[2]?.messages.at(-1)?.content).toBe("kept");
  });

  test("the bot ends an answer and posts nothing again if a person deletes its reply", async () => {
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
