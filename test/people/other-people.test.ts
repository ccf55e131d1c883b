import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { readKept } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { ada, ben, command, message } from "../../lab/support/events.ts";

async function startWithAdmin(failing = { isOut: false }) {
  const database = new DatabaseSync(":memory:");
  const engine = startEngine({
    database,
    policy: () => ({ access: { admins: ["person:ada"] } }),
    wrapStores: (stores) => ({
      ...stores,
      inTurn: (key, task) =>
        failing.isOut && key === "audit" ? Promise.reject(new Error("away")) : stores.inTurn(key, task),
    }),
  });
  await engine.handle(message("mine, canary", { author: ben, conversationId: "test:b" }));
  const say = async (name: string, text: string, author = ada) => {
    await engine.handle(command(name, text, { author }));
    return engine.channel.at(-1);
  };
  const left = async (words: string) => (await readKept(database)).filter((entry) => entry.includes(words));
  return { ...engine, say, left };
}

describe("/forget and /export for another person", () => {
  test("an admin permanently erases everything about a person with /forget @someone", async () => {
    const { say, left, audit } = await startWithAdmin();
    const asked = await say("forget", "<@ben>");
    expect(asked?.draft.markdown).toMatch(/Nothing is erased yet.*`\/forget person:ben for good`/);
    expect(await left("canary")).not.toEqual([]);
    expect(await audit.read(9)).toEqual([]);
    const done = await say("forget", "<@ben> for good");
    expect(done?.draft.markdown).toMatch(/^Erased 2 messages\. I no longer know anything about `ben`/);
    expect(await left("canary")).toEqual([]);
    expect(await audit.read(9)).toMatchObject([{ what: "erasure", authorId: "ada", after: "person:pseudonym-of-ben" }]);
  });

  test("an admin gets a person's data with /export @someone", async () => {
    const { say, audit } = await startWithAdmin();
    const file = (await say("export", "<@ben>"))?.files[0];
    expect(JSON.parse(new TextDecoder().decode(file?.bytes))).toMatchObject({
      authorId: "ben",
      conversations: [{ conversationId: "test:b" }],
    });
    expect(await audit.read(9)).toMatchObject([{ what: "export", authorId: "ada", after: "person:ben" }]);
  });

  test("only an admin can name another person in /forget and /export", async () => {
    const { say, left, audit } = await startWithAdmin();
    for (const [name, text] of [
      ["forget", "<@ada>"],
      ["forget", "person:ada for good"],
      ["export", "<@ada>"],
    ] as const) {
      const answer = await say(name, text, ben);
      expect(answer?.draft.markdown).toMatch(/^Only admins/);
      expect(answer?.files).toEqual([]);
    }
    expect(await left("canary")).not.toEqual([]);
    expect(await audit.read(9)).toEqual([]);
  });

  test("the bot erases and exports nothing if it cannot write the audit log", async () => {
    const failing = { isOut: false };
    const { say, left } = await startWithAdmin(failing);
    failing.isOut = true;
    expect((await say("forget", "<@ben> for good"))?.draft.markdown).toMatch(/storage is unavailable/);
    expect((await say("export", "<@ben>"))?.files).toEqual([]);
    expect(await left("canary")).not.toEqual([]);
  });

  test("a bare id means the person in the admin's own workspace", async () => {
    const engine = startEngine({ policy: () => ({ access: { admins: ["person:T1/ada"] } }) });
    const admin = { ...ada, id: "T1/ada" };
    for (const id of ["T1/ben", "ben", "T2/ben"]) {
      await engine.accept(message("hello", { author: { id, name: "Ben" }, conversationId: `test:${id}` }));
    }
    await engine.idle();
    await engine.handle(command("forget", "<@ben|Ben> for good", { author: admin }));
    const count = async (id: string) => (await engine.history.countAuthor("test", id)).entries;
    expect([await count("T1/ben"), await count("ben"), await count("T2/ben")]).toEqual([0, 2, 2]);
  });
});
