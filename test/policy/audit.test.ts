import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createAudit } from "../../src/policy/audit.ts";
import { createStores } from "../../src/store/keyv.ts";
import { ada, ben, command } from "../support/events.ts";
import { silent } from "../support/log.ts";

function start() {
  const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  return createAudit({ open, inTurn, pseudonym: () => "somebody", now: () => 1_000, log: silent });
}

describe("the log of changed settings", () => {
  test("says who changed what, when, where, before and after, the newest first", async () => {
    const audit = start();
    await audit.note({ event: command("listen"), what: "listen", before: "off", after: "on" });
    await audit.note({ event: command("persona"), what: "persona", after: "be brief" });
    const place = { at: 1_000, platform: "test", channelId: "general", authorId: "ada", name: "Ada" };
    expect(await audit.read(10)).toEqual([
      { ...place, number: 1, what: "persona", after: "be brief" },
      { ...place, number: 0, what: "listen", before: "off", after: "on" },
    ]);
    expect(await audit.read(1)).toHaveLength(1);
  });

  test("notes what an event changed once, and nothing where it changed nothing", async () => {
    const audit = start();
    const event = command("listen");
    for (const what of ["listen", "listen"]) await audit.note({ event, what, before: "off", after: "on" });
    await audit.note({ event: command("listen"), what: "listen", before: "on", after: "on" });
    expect(await audit.read(10)).toHaveLength(1);
  });

  test("says when the store does not keep a change, so that nothing is done that cannot be noted", async () => {
    const database = new DatabaseSync(":memory:");
    const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent });
    const audit = createAudit({ open, inTurn, pseudonym: () => "somebody", now: () => 1_000, log: silent });
    expect(await audit.note({ event: command("access"), what: "access", after: "a rule" })).toBe(true);
    database.exec("PRAGMA query_only = ON");
    expect(await audit.note({ event: command("access"), what: "access", after: "another" })).toBe(false);
  });

  test("gives people their own, and forgets who they were and what they wrote", async () => {
    const audit = start();
    await audit.note({ event: command("persona"), what: "persona", after: "Ada's pirate" });
    const other = command("persona", "", { author: ben });
    await audit.note({ event: other, what: "persona", before: "Ada's pirate", after: "brief" });
    const rule = command("access", "", { author: ben });
    await audit.note({ event: rule, what: "access", after: "deny chat to person:ada" });
    expect(await audit.exportAuthor("test", ada.id)).toMatchObject([{ after: "Ada's pirate" }]);
    await audit.forgetAuthor("test", ada.id);
    const kept = await audit.read(10);
    expect(JSON.stringify(kept)).not.toMatch(/ada/i);
    expect(kept.map(({ authorId, before, after }) => [authorId, before, after])).toEqual([
      ["ben", undefined, "deny chat to person:somebody"],
      ["ben", "(erased)", "brief"],
      ["somebody", undefined, "(erased)"],
    ]);
    expect(await audit.exportAuthor("test", ada.id)).toEqual([]);
  });
});
