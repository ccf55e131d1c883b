import { describe, expect, test } from "vitest";
import { createChanges } from "../../../lab/discord-sim/changes.ts";

describe("waiting for a change of the simulator", () => {
  test("`until` resolves at once, or after the change that makes its condition true", async () => {
    const changes = createChanges();
    expect(await changes.until(() => 7)).toBe(7);
    let value = "";
    const found = changes.until(() => value);
    value = "there";
    changes.notify();
    expect(await found).toBe("there");
  });

  test("`until` rejects with its condition's name if nothing happens for long, the predicate throws, or the simulator closes", async () => {
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
