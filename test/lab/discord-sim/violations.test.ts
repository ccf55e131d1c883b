import { describe, expect, test } from "vitest";
import { createViolations } from "../../../lab/discord-sim/violations.ts";

describe("the violations in the Discord simulator", () => {
  test("assertClean names every violation", () => {
    const violations = createViolations(() => 5);
    violations.assertClean();
    violations.record("ping", "Somebody was notified.");
    violations.record("stale-edit", "Old text came back.");
    expect(() => violations.assertClean()).toThrow(
      "The bot broke 2 of Discord's rules:\n- ping: Somebody was notified.\n- stale-edit: Old text came back.",
    );
    expect(violations.list[0]).toMatchObject({ atMs: 5 });
  });

  test("assertClean allows as many violations as the test allows, and no more", () => {
    const violations = createViolations(() => 0);
    violations.record("ping", "One.");
    violations.assertClean({ allow: { ping: 1 } });
    violations.record("ping", "Two.");
    expect(() => violations.assertClean({ allow: { ping: 1 } })).toThrow("One.\n- ping: Two.");
    violations.assertClean({ allow: { ping: Infinity } });
  });
});
