import { describe, expect, test } from "vitest";
import { createChanges } from "../../../lab/support/changes.ts";

describe("waiting for a change of the Slack simulator", () => {
  test("a wait resolves when its condition holds", async () => {
    const changes = createChanges();
    let count = 0;
    const waited = changes.until(() => count === 2 && "two", "two");
    for (let step = 0; step < 2; step++) {
      count += 1;
      changes.changed();
    }
    expect(await waited).toBe("two");
  });

  test("a wait resolves at once if its condition already holds", async () => {
    expect(await createChanges().until(() => 0)).toBe(0);
  });

  test("a wait rejects after a long time without changes, and names its condition", async () => {
    await expect(createChanges().until(() => false, "the moon", 1)).rejects.toThrow("wait for: the moon.");
  });

  test("a wait rejects with the predicate's error, and when the simulator closes", async () => {
    const changes = createChanges();
    const failing = changes.until(() => {
      throw new Error("looked wrong");
    });
    await expect(failing).rejects.toThrow("looked wrong");
    const waiting = changes.until(() => false);
    changes.close();
    await expect(waiting).rejects.toThrow(/closed/);
  });
});
