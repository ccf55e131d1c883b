import { describe, expect, test } from "vitest";
import { createChanges } from "./changes.ts";

describe("changes", () => {
  test("wake whoever waits when what was waited for is there", async () => {
    const changes = createChanges();
    let count = 0;
    const waited = changes.until(() => count === 2 && "two", "two");
    for (let step = 0; step < 2; step++) {
      count += 1;
      changes.changed();
    }
    expect(await waited).toBe("two");
  });

  test("are not waited for when everything is there", async () => {
    expect(await createChanges().until(() => 0)).toBe(0);
  });

  test("are waited for until nothing changes for long, and the words say for what", async () => {
    await expect(createChanges().until(() => false, "the moon", 1)).rejects.toThrow("this did not come: the moon.");
  });

  test("pass on what the predicate throws, and give up when the simulator closes", async () => {
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
