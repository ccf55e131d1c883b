import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ada, ben, command } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { createAudit } from "../../src/policy/audit.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";

function start() {
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  return createAudit({ open, inTurn, pseudonym: () => "somebody", now: () => 1_000, log: silent });
}

describe("the audit log of changes", () => {
  test("the audit log says who changed what, when and where, before and after, newest first", async () => {
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

  test("the audit log records a change once per event, and nothing if nothing changed", async () => {
    const audit = start();
    const event = command("listen");
    for (const what of ["listen", "listen"]) await audit.note({ event, what, before: "off", after: "on" });
    await audit.note({ event: command("listen"), what: "listen", before: "on", after: "on" });
    expect(await audit.read(10)).toHaveLength(1);
  });

  test("the audit log reports that the store did not accept an entry, so nothing happens without a record", async () => {
    const database = new DatabaseSync(":memory:");
    const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
    const audit = createAudit({ open, inTurn, pseudonym: () => "somebody", now: () => 1_000, log: silent });
    expect(await audit.note({ event: command("access"), what: "access", after: "a rule" })).toBe(true);
    database.exec("PRAGMA query_only = ON");
    expect(await audit.note({ event: command("access"), what: "access", after: "another" })).toBe(false);
  });

  test("the audit log exports a person's entries, and erases the person's name and words from them", async () => {
    const audit = start();
    await audit.note({ event: command("persona"), what: "persona", after: "Ada's pirate" });
    const other = command("persona", "", { author: ben });
    await audit.note({ event: other, what: "persona", before: "Ada's pirate", after: "brief" });
    const rule = command("access", "", { author: ben });
    await audit.note({ event: rule, what: "access", after: "deny chat to person:ada" });
    expect(await audit.exportAuthor("test", ada.id)).toMatchObject([{ after: "Ada's pirate" }]);
    await audit.forgetAuthor("test", ada.id);
    const kept = await audit.read(10);
    expect(JSON.stringify(kept)).not.toMatch(/\bada\b/i);
    expect(kept.map(({ authorId, before, after }) => [authorId, before, after])).toEqual([
      ["ben", undefined, "deny chat to person:somebody"],
      ["ben", "(erased)", "brief"],
      ["somebody", undefined, "(erased)"],
    ]);
    expect(await audit.exportAuthor("test", ada.id)).toEqual([]);
  });
});
