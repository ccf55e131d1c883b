import { describe, expect, test } from "vitest";
import { createChanges } from "./changes.ts";

describe("until", () => {
  test("resolves at once, or after the change that makes it true", async () => {
    const changes = createChanges();
    expect(await changes.until(() => 7)).toBe(7);
    let value = "";
    const found = changes.until(() => value);
    value = "there";
    changes.notify();
    expect(await found).toBe("there");
  });

  test("rejects with what was waited for, when nothing happens for long, throws, or the simulator closes", async () => {
    const changes = createChanges();
    await expect(changes.until(() => false, "a miracle", 1)).rejects.toThrow("in vain: a miracle");
    const throwing = () => {
      throw new Error("broken");
    };
    await expect(changes.until(throwing)).rejects.toThrow("broken");
    const waiting = changes.until(() => false);
    changes.close();
    await expect(waiting).rejects.toThrow("closed while");
    await expect(changes.until(() => true)).rejects.toThrow("closed");
  });
});
