import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { comeIn } from "../../lab/support/administrator.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { OpenedMessage, Story, Trace, Trends } from "../../src/admin/page/wire.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { startReplica } from "../support/dashboard.ts";

const SECRET = "the password of the safe is swordfish";

describe("the dashboard's stories", () => {
  test("the story of a failure contains the times and the shown sentence, and no word of the conversation", async () => {
    const broken = new GatewayError("interrupted", "cut");
    const replica = await startReplica({ scripts: [[`I heard that ${SECRET}`, broken]] });
    const { ask } = await comeIn(replica.url);
    await replica.accept(message(SECRET, { at: Date.now() }));
    await replica.idle();
    const text = await (await ask("failures")).text();
    expect(text).not.toContain("swordfish");
    const [story] = JSON.parse(text) as Story[];
    expect(story).toMatchObject({ outcome: "interrupted", author: { name: "Ada" }, messages: 1, process: "one" });
    expect(story?.note).toMatch(/^The answer broke off before it was finished/);
    expect(story?.steps.map(({ what }) => what)).toEqual([
      "The question was asked",
      "Started by one",
      "The first text arrived",
      expect.stringMatching(/Users saw the first text|Failed \(gateway: interrupted\)/),
      expect.stringMatching(/Users saw the first text|Failed \(gateway: interrupted\)/),
      "Ended: interrupted",
    ]);
    expect(story?.steps.filter(({ isBad }) => isBad)).toHaveLength(2);
  });

  test("the process that resumes a turn records the failure of the process that died, and counts it once", async () => {
    const { database, platform } = { database: new DatabaseSync(":memory:"), platform: fakePlatform() };
    const question = message("hi");
    const dead = startEngine({ database, platform, scripts: [["Well", new GatewayError("interrupted", "cut")]] });
    await dead.accept(question);
    await dead.idle();
    await dead.queue.close(0);
    const replica = await startReplica({ database, platform });
    const admin = await comeIn(replica.url);
    expect(await admin.read<Story[]>("failures")).toEqual([]);
    for (const _ of ["once", "twice"]) await replica.accept(action("retry", toTurnId(question.key), { author: ben }));
    await replica.idle();
    expect(await admin.read<Story[]>("failures")).toMatchObject([
      { turnId: toTurnId(question.key), outcome: "interrupted", messages: 1, model: "fake" },
    ]);
    const { counts } = await admin.read<Trends>("trends/hour");
    expect(counts.turns).toMatchObject({ interrupted: expect.arrayContaining([1]) });
  });

  test("the dashboard opens messages only after the audit log has recorded the reader's name", async () => {
    const replica = await startReplica({ scripts: [["Yes."]] });
    const admin = await comeIn(replica.url);
    await replica.accept(message(SECRET));
    await replica.idle();
    const [story] = await admin.read<Story[]>("turns");
    const path = `turns/${story?.turnId}`;
    const trace = await admin.read<Trace>(`${path}/trace`);
    expect(trace).toMatchObject({ model: "fake", shown: 1, persona: "as configured" });
    expect(JSON.stringify(trace)).not.toContain("swordfish");
    expect((await admin.ask(`${path}/messages`)).status).toBe(404);
    expect(replica.acts).toEqual([]);

    const opened = await admin.read<OpenedMessage[]>(`${path}/messages`, { method: "POST" });
    expect(opened).toMatchObject([
      { author: "Ada", text: SECRET, wasShown: true },
      { author: null, text: "Yes." },
    ]);
    expect(replica.acts).toMatchObject([
      { by: "administrator at 127.0.0.1", act: "opened the messages of a conversation", conversationId: "test:a" },
    ]);
  });

  test("the dashboard opens no messages while it cannot write the audit log", async () => {
    const note = () => Promise.reject(new Error("the disk is full"));
    const replica = await startReplica({ note });
    const admin = await comeIn(replica.url);
    await replica.accept(message(SECRET));
    await replica.idle();
    const [story] = await admin.read<Story[]>("turns");
    const answer = await admin.ask(`turns/${story?.turnId}/messages`, { method: "POST" });
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain("swordfish");
  });

  test("/forget erases a person's stories, and /export contains them before", async () => {
    const replica = await startReplica();
    const admin = await comeIn(replica.url);
    await replica.accept(message("hi"));
    await replica.accept(message("hi", { author: { id: "ben", name: "Ben" }, conversationId: "test:b" }));
    await replica.idle();
    expect(await replica.insight.exportAuthor("test", "ada")).toHaveLength(1);
    await replica.accept(command("forget", "me for good", { author: ada }));
    await replica.idle();
    const left = await admin.read<Story[]>("turns");
    expect(left.map(({ author }) => author.name)).toEqual(["Ben"]);
  });
});
