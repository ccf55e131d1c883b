import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { ada, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";

function start(options: Parameters<typeof startEngine>[0] = {}) {
  const engine = startEngine(options);
  const say = async (event: Parameters<typeof engine.accept>[0]) => {
    await engine.handle(event);
    return engine.texts().at(-1);
  };
  const prompts = () => engine.requests.map(({ messages }) => messages[0]?.content);
  return { ...engine, say, prompts };
}

describe("/persona", () => {
  test("/persona sets the model's instructions in this channel until someone resets it", async () => {
    const { say, prompts } = start();
    expect(await say(command("persona", "You are a pirate.\nArr!"))).toMatch(/\n> You are a pirate\.\n> Arr!$/);
    await say(message("Hello"));
    await say(message("Hello", { reply: { platform: "test", channelId: "random" }, conversationId: "test:b" }));
    expect(await say(command("persona", "reset"))).toContain("no persona here");
    await say(message("Hello"));
    expect(prompts()).toEqual(["You are a pirate.\nArr!", "Be kind.", "Be kind."]);
  });

  test("/persona shows everyone the instructions, and explains how to set them if there are none", async () => {
    const { say } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("persona", "", member))).toBe(
      "I have no persona here. To give me one, write `/persona` followed by a description.",
    );
    await say(command("persona", "a pirate"));
    expect(await say(command("persona", "show", member))).toBe(
      "My persona here (`/persona reset` removes it):\n> a pirate",
    );
  });

  test("the bot suggests a channel's persona prompts, and exports and erases them with the person who set them", async () => {
    const { say, settings, stores, audit } = start();
    const general = { platform: "test", channelId: "general" };
    expect(await say(command("persona", "prompts"))).toContain("I suggest the usual prompts here.");
    expect(await say(command("persona", "prompts: Who is on call? | Sum up\u202e today\n|"))).toMatch(
      /\n- Who is on call\?\n- Sum up today$/,
    );
    const set = ["Who is on call?", "Sum up today"];
    expect((await settings.read(general)).prompts).toEqual(set);
    expect(await say(command("help"))).toMatch(/could ask me:\n- Who is on call\?\n- Sum up today$/);
    expect(await say(command("persona", "Prompts"))).toMatch(/\n- Who is on call\?\n- Sum up today$/);
    expect(await say(command("persona", "prompts: a|b|c|d|e"))).toMatch(/^I can suggest at most 4 prompts/);
    expect(await settings.exportAuthor("test", ada.id)).toEqual([{ channelId: "general", prompts: set }]);
    expect((await audit.read(1))[0]).toMatchObject({ what: "prompts", after: set.join(" | ") });
    await stores.eraseOwner({ platform: "test", id: ada.id });
    await audit.forgetAuthor("test", ada.id);
    expect((await settings.read(general)).prompts).toBeUndefined();
    expect(JSON.stringify(await audit.read(9))).not.toContain("on call");
    await say(command("persona", "prompts: Who is on call?"));
    expect(await say(command("persona", "prompts: reset"))).toContain("the usual prompts here");
    expect((await settings.read(general)).prompts).toBeUndefined();
  });

  test("people who can change the channel's settings can set persona prompts", async () => {
    const { say, settings } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("persona", "prompts: mine", member))).not.toContain("From now on");
    expect((await settings.read({ platform: "test", channelId: "general" })).prompts).toBeUndefined();
  });

  test("/persona applies the changed fields of a form and resets the empty ones", async () => {
    const { say, settings, audit } = start();
    const general = { platform: "test", channelId: "general" };
    const send = (persona: string, prompts: string, more = {}) =>
      say({ ...command("persona", "", more), options: { persona, prompts } });
    const first = await send("a pirate", "Who is on call?\nSum up today");
    expect(first).toMatch(
      /this is my persona here.*\n> a pirate\n\nFrom now on, I'll suggest.*\n- Who is on call\?\n- Sum/,
    );
    expect(await send("a pirate", "Who is on call?\nSum up today")).toBe("I changed nothing.");
    expect(await audit.read(9)).toHaveLength(2);
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await send("a nurse", "", member)).toContain("Only this channel's managers");
    expect(await send("a pirate", "")).toBe("From now on, I'll suggest the usual prompts here.");
    expect(await settings.read(general)).toMatchObject({ persona: "a pirate" });
    expect(await send("", "")).toContain("no persona here");
    expect(await settings.read(general)).toEqual({ isKnown: true });
  });

  test.each([
    ["set a pirate", "a pirate"],
    ["SET\na pirate", "a pirate"],
    ["settle all quarrels", "settle all quarrels"],
    ["show no mercy", "show no mercy"],
    ["a\u202E pi\u0000rate\r\n\n\n\nArr", "a pirate\n\nArr"],
  ])("/persona %j sets the model's instructions to %j", async (text, told) => {
    const { say, prompts } = start();
    await say(command("persona", text));
    await say(message("Hello"));
    expect(prompts()).toEqual([told]);
  });

  test("/persona changes nothing if the text is invisible or too long for a message", async () => {
    const { say, prompts } = start();
    await say(command("persona", "a pirate"));
    expect(await say(command("persona", "set"))).toContain("write who I should be");
    expect(await say(command("persona", "set \u202E"))).toContain("write who I should be");
    expect(await say(command("persona", "x".repeat(1_501)))).toMatch(/at most 1500 characters; this one has 1501/);
    await say(message("Hello"));
    expect(prompts()).toEqual(["a pirate"]);
  });

  test("/persona truncates the quoted persona to one message", async () => {
    const { say, violations, texts } = start({ platform: fakePlatform({ maxLength: 500 }) });
    await say(command("persona", "🧪 x\n".repeat(250)));
    expect(texts()[0]).toMatch(/…$/);
    expect(violations).toEqual([]);
  });

  test("/persona lets only the channel's managers change it, if the platform knows them", async () => {
    const { say, prompts } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    await say(command("persona", "a pirate", { author: { ...ada, mayConfigure: true } }));
    for (const text of ["a nurse", "set a nurse", "reset"]) {
      expect(await say(command("persona", text, member))).toContain("Only this channel's managers");
    }
    await say(message("Hello"));
    expect(prompts()).toEqual(["a pirate"]);
  });

  test.skipIf(isOnRedis)(
    "/persona says that it can't save or look up anything while the store is unavailable",
    async () => {
      const database = new DatabaseSync(":memory:");
      const { say } = start({ database });
      database.exec("ALTER TABLE keyv RENAME TO away");
      expect(await say(command("persona"))).toContain("storage is unavailable");
      expect(await say(command("persona", "a pirate"))).toContain("couldn't save that");
    },
  );

  test("/export and /forget include a persona for the person who wrote it", async () => {
    const { say, prompts, channel } = start();
    await say(command("persona", "You talk to Ada."));
    await say(command("export"));
    expect(new TextDecoder().decode(channel.at(-1)?.files[0]?.bytes)).toContain('"persona": "You talk to Ada."');
    await say(command("forget", "me for good"));
    await say(message("Hello"));
    expect(prompts()).toEqual(["Be kind."]);
  });
});
