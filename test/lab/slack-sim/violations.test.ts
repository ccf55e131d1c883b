import { describe, expect, test } from "vitest";
import { createViolations } from "../../../lab/slack-sim/violations.ts";

describe("the violations in the Slack simulator", () => {
  test("one error lists all violations", () => {
    const violations = createViolations(
      () => 7,
      () => {},
    );
    violations.assertClean();
    violations.record("ping", "Somebody was disturbed.");
    violations.record("backwards", "Something shrank.");
    expect(() => violations.assertClean()).toThrow(/2 times:\n- ping: Somebody was disturbed\.\n- backwards: /);
    expect(() => violations.assertClean({ allow: ["ping"] })).toThrow(/1 times/);
    expect(violations.all[0]).toEqual({ kind: "ping", sentence: "Somebody was disturbed.", atMs: 7 });
  });

  test("violations can be allowed before or after they happen", () => {
    const violations = createViolations(
      () => 0,
      () => {},
    );
    violations.record("ping", "before");
    violations.allow("ping");
    violations.record("ping", "after");
    violations.assertClean();
  });
});
