import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { ada, command, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

function start(options: Parameters<typeof startEngine>[0] = {}) {
  const engine = startEngine(options);
  const say = async (event: Parameters<typeof engine.accept>[0]) => {
    await engine.accept(event);
    await engine.idle();
    return engine.texts().at(-1);
  };
  const prompts = () => engine.requests.map(({ messages }) => messages[0]?.content);
  return { ...engine, say, prompts };
}

describe("/persona", () => {
  test("/persona is what the model is told in this channel, until it is taken back", async () => {
    const { say, prompts } = start();
    expect(await say(command("persona", "You are a pirate.\nArr!"))).toMatch(/\n> You are a pirate\.\n> Arr!$/);
    await say(message("Hello"));
    await say(message("Hello", { reply: { platform: "test", channelId: "random" }, conversationId: "test:b" }));
    expect(await say(command("persona", "reset"))).toContain("no persona of my own");
    await say(message("Hello"));
    expect(prompts()).toEqual(["You are a pirate.\nArr!", "Be kind.", "Be kind."]);
  });

  test("/persona is shown to everybody, and says how to set one where there is none", async () => {
    const { say } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("persona", "", member))).toBe(
      "I have no persona of my own here. `/persona` with a text behind it gives me one.",
    );
    await say(command("persona", "a pirate"));
    expect(await say(command("persona", "show", member))).toBe(
      "My persona here, which `/persona reset` takes back:\n> a pirate",
    );
  });

  test("/persona prompts are suggested in the channel, and exported and forgotten with the person who set them", async () => {
    const { say, settings, audit } = start();
    const general = { platform: "test", channelId: "general" };
    expect(await say(command("persona", "prompts"))).toContain("I suggest the usual things here.");
    expect(await say(command("persona", "prompts: Who is on call? | Sum up\u202e today\n|"))).toMatch(
      /\n- Who is on call\?\n- Sum up today$/,
    );
    const set = ["Who is on call?", "Sum up today"];
    expect((await settings.read(general)).prompts).toEqual(set);
    expect(await say(command("help"))).toMatch(/for example:\n- Who is on call\?\n- Sum up today$/);
    expect(await say(command("persona", "Prompts"))).toMatch(/\n- Who is on call\?\n- Sum up today$/);
    expect(await say(command("persona", "prompts: a|b|c|d|e"))).toMatch(/^At most 4 prompts/);
    expect(await settings.exportAuthor("test", ada.id)).toEqual([{ channelId: "general", prompts: set }]);
    expect((await audit.read(1))[0]).toMatchObject({ what: "prompts", after: set.join(" | ") });
    await settings.forgetAuthor("test", ada.id);
    await audit.forgetAuthor("test", ada.id);
    expect((await settings.read(general)).prompts).toBeUndefined();
    expect(JSON.stringify(await audit.read(9))).not.toContain("on call");
    await say(command("persona", "prompts: Who is on call?"));
    expect(await say(command("persona", "prompts: reset"))).toContain("the usual things here");
    expect((await settings.read(general)).prompts).toBeUndefined();
  });

  test("/persona prompts are set by those who may change the channel", async () => {
    const { say, settings } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("persona", "prompts: mine", member))).not.toContain("From now on");
    expect((await settings.read({ platform: "test", channelId: "general" })).prompts).toBeUndefined();
  });

  test("/persona takes the fields of a form, changes what is another in them, and takes back what is empty", async () => {
    const { say, settings, audit } = start();
    const general = { platform: "test", channelId: "general" };
    const send = (persona: string, prompts: string, more = {}) =>
      say({ ...command("persona", "", more), options: { persona, prompts } });
    const first = await send("a pirate", "Who is on call?\nSum up today");
    expect(first).toMatch(
      /this is my persona here.*\n> a pirate\n\nFrom now on I suggest.*\n- Who is on call\?\n- Sum/,
    );
    expect(await send("a pirate", "Who is on call?\nSum up today")).toBe("Nothing was changed.");
    expect(await audit.read(9)).toHaveLength(2);
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await send("a nurse", "", member)).toContain("Only people who manage this channel");
    expect(await send("a pirate", "")).toBe("From now on I suggest the usual things here.");
    expect(await settings.read(general)).toMatchObject({ persona: "a pirate" });
    expect(await send("", "")).toContain("no persona of my own");
    expect(await settings.read(general)).toEqual({ isKnown: true });
  });

  test.each([
    ["set a pirate", "a pirate"],
    ["SET\na pirate", "a pirate"],
    ["settle all quarrels", "settle all quarrels"],
    ["show no mercy", "show no mercy"],
    ["a\u202E pi\u0000rate\r\n\n\n\nArr", "a pirate\n\nArr"],
  ])("/persona %j tells the model %j", async (text, told) => {
    const { say, prompts } = start();
    await say(command("persona", text));
    await say(message("Hello"));
    expect(prompts()).toEqual([told]);
  });

  test("/persona without anything that can be seen, or longer than a message shows, changes nothing", async () => {
    const { say, prompts } = start();
    await say(command("persona", "a pirate"));
    expect(await say(command("persona", "set"))).toContain("Write what I should be");
    expect(await say(command("persona", "set \u202E"))).toContain("Write what I should be");
    expect(await say(command("persona", "x".repeat(1_501)))).toMatch(/at most 1500 characters, and this has 1501/);
    await say(message("Hello"));
    expect(prompts()).toEqual(["a pirate"]);
  });

  test("/persona is repeated as far as it fits into one message", async () => {
    const { say, violations, texts } = start({ platform: fakePlatform({ maxLength: 500 }) });
    await say(command("persona", "🧪 x\n".repeat(250)));
    expect(texts()[0]).toMatch(/…$/);
    expect(violations).toEqual([]);
  });

  test("/persona is for those who manage the channel, where the platform tells who does", async () => {
    const { say, prompts } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    await say(command("persona", "a pirate", { author: { ...ada, mayConfigure: true } }));
    for (const text of ["a nurse", "set a nurse", "reset"]) {
      expect(await say(command("persona", text, member))).toContain("Only people who manage this channel");
    }
    await say(message("Hello"));
    expect(prompts()).toEqual(["a pirate"]);
  });

  test.skipIf(isOnRedis)("/persona says what it cannot do while the store is out of reach", async () => {
    const database = new DatabaseSync(":memory:");
    const { say } = start({ database });
    database.exec("ALTER TABLE keyv RENAME TO away");
    expect(await say(command("persona"))).toContain("out of reach");
    expect(await say(command("persona", "a pirate"))).toContain("could not keep that");
  });

  test("a persona goes with the person who wrote it, who can have it as a file before", async () => {
    const { say, prompts, channel } = start();
    await say(command("persona", "You talk to Ada."));
    await say(command("export"));
    expect(new TextDecoder().decode(channel.at(-1)?.files[0]?.bytes)).toContain('"persona": "You talk to Ada."');
    await say(command("forget", "me for good"));
    await say(message("Hello"));
    expect(prompts()).toEqual(["Be kind."]);
  });
});
