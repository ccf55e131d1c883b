import { describe, expect, test } from "vitest";
import { createChanges } from "../../../lab/support/changes.ts";

describe("waiting for a change in a simulator", () => {
  test("a wait resolves at once, or after the change that makes its condition true", async () => {
    const changes = createChanges();
    expect(await changes.until(() => 7)).toBe(7);
    let count = 0;
    const waited = changes.until(() => count === 2 && "two", "two");
    for (let step = 0; step < 2; step++) {
      count += 1;
      changes.changed();
    }
    expect(await waited).toBe("two");
  });

  test("a wait rejects with its condition's name if nothing changes for long, the predicate throws, or the simulator closes", async () => {
    const changes = createChanges();
    await expect(changes.until(() => false, "the moon", 1)).rejects.toThrow("wait for: the moon.");
    const failing = changes.until(() => {
      throw new Error("looked wrong");
    });
    await expect(failing).rejects.toThrow("looked wrong");
    const waiting = changes.until(() => false);
    changes.close();
    await expect(waiting).rejects.toThrow("closed during");
    await expect(changes.until(() => true)).rejects.toThrow("is closed");
  });
});
