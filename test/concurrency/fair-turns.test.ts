import { describe, expect, test } from "vitest";
import { createFairTurns } from "../../src/concurrency/fair-turns.ts";

const never = new AbortController().signal;

/** Tasks that report their start, and end on demand. */
function setUp(places?: number) {
  const inTurn = createFairTurns(places);
  const begun: string[] = [];
  const open = new Map<string, () => void>();
  const add = (owner: string, name: string, signal = never) =>
    inTurn(
      owner,
      async () => {
        begun.push(name);
        await new Promise<void>((resolve) => open.set(name, resolve));
        return name;
      },
      signal,
    );
  const end = (name: string) => open.get(name)?.();
  return { inTurn, begun, add, end };
}

describe("createFairTurns", () => {
  test("fair turns run one task at a time, and the next when it has ended", async () => {
    const { begun, add, end } = setUp();
    const both = [add("ada", "a1"), add("ben", "b1")] as const;
    expect(begun).toEqual(["a1"]);
    end("a1");
    expect(await both[0]).toBe("a1");
    expect(begun).toEqual(["a1", "b1"]);
    end("b1");
    expect(await both[1]).toBe("b1");
  });

  test("fair turns run as many tasks at once as there are slots", async () => {
    const { begun, add, end } = setUp(2);
    const all = ["a1", "a2", "a3", "b1"].map((name) => add(name.slice(0, 1), name));
    expect(begun).toEqual(["a1", "a2"]);
    for (const name of ["a2", "a1"]) end(name);
    await Promise.all(all.slice(0, 2));
    expect(begun).toEqual(["a1", "a2", "a3", "b1"]);
    for (const name of ["a3", "b1"]) end(name);
    await Promise.all(all);
    const more = ["c1", "c2", "c3"].map((name) => add("c", name));
    expect(begun.slice(4)).toEqual(["c1", "c2"]);
    for (const name of ["c1", "c2"]) end(name);
    await Promise.all(more.slice(0, 2));
    end("c3");
    await more[2];
  });

  test("fair turns let an owner with one task pass owners with many", async () => {
    const { begun, add, end } = setUp();
    const names = ["a1", "a2", "a3", "a4", "b1", "c1", "c2"];
    const all = names.map((name) => add(name.slice(0, 1), name));
    for (const name of ["a1", "a2", "b1", "c1", "a3", "c2", "a4"]) {
      await expect.poll(() => begun.at(-1)).toBe(name);
      end(name);
    }
    expect(await Promise.all(all)).toEqual(names);
  });

  test("fair turns continue after a failed task", async () => {
    const { inTurn, add, end } = setUp();
    const failing = inTurn("ada", () => Promise.reject(new Error("broken")), never);
    const next = add("ben", "b1");
    await expect(failing).rejects.toThrow("broken");
    end("b1");
    expect(await next).toBe("b1");
  });

  test("an aborted task is removed from the queue and delays no other task", async () => {
    const { begun, add, end } = setUp();
    const first = add("ada", "a1");
    const left = new AbortController();
    const leaving = add("ben", "b1", left.signal);
    const staying = add("ben", "b2");
    left.abort(new Error("I left."));
    await expect(leaving).rejects.toThrow("I left.");
    await expect(add("cal", "c1", left.signal)).rejects.toThrow("I left.");
    end("a1");
    await first;
    await expect.poll(() => begun).toEqual(["a1", "b2"]);
    end("b2");
    expect(await staying).toBe("b2");
    const again = add("dan", "d1");
    end("d1");
    expect(await again).toBe("d1");
  });
});
