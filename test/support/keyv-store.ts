import type { Keyv } from "keyv";
import { beforeEach, expect, test, vi } from "vitest";

/**
 * Keyv's rules for all stores, as in Keyv's own suite. That suite depends on a second Vitest and on a compiled SQLite.
 * `open` returns a Keyv on the tested store and keeps the store's contents.
 */
export function describeKeyvStore(open: (namespace: string) => Keyv): void {
  let keyv: Keyv;
  beforeEach(async () => {
    keyv = open("keyv1");
    await keyv.clear();
  });

  async function entriesOf(keyv: Keyv): Promise<Map<string, unknown>> {
    return new Map(await Array.fromAsync<[string, unknown]>(keyv.iterator?.({}) ?? []));
  }

  test("the store gets a value that was set, and undefined for a missing key", async () => {
    expect(await keyv.set("foo", "bar")).toBe(true);
    expect(await keyv.get("foo")).toBe("bar");
    expect(await keyv.get("fizz")).toBeUndefined();
  });

  test("the store gets the values of many keys in the same order, undefined for missing keys", async () => {
    await keyv.set("foo", "bar");
    await keyv.set("foo2", "bar2");
    expect(await keyv.get(["foo2", "foo1", "foo"])).toEqual(["bar2", undefined, "bar"]);
    expect(await keyv.get(["a", "b"])).toEqual([undefined, undefined]);
  });

  test("the store says whether it has a key", async () => {
    await keyv.set("foo", "bar");
    expect([await keyv.has("foo"), await keyv.has("fizz")]).toEqual([true, false]);
  });

  test("the store deletes a key, and returns whether it existed", async () => {
    await keyv.set("foo", "bar");
    expect([await keyv.delete("foo"), await keyv.delete("foo")]).toEqual([true, false]);
    expect(await keyv.get("foo")).toBeUndefined();
  });

  test("the store deletes many keys, and returns whether any existed", async () => {
    for (const key of ["foo", "foo1", "foo2"]) await keyv.set(key, "bar");
    expect(await keyv.delete(["foo", "foo1"])).toBe(true);
    expect(await keyv.get(["foo", "foo1", "foo2"])).toEqual([undefined, undefined, "bar"]);
    expect(await keyv.delete(["foo", "foo1"])).toBe(false);
  });

  test("a value expires after its time to live, and the iterator leaves it out", async () => {
    await keyv.set("short", "1", 1);
    await keyv.set("long", "2", 60_000);
    await keyv.set("ever", "3");
    await vi.waitFor(async () => expect(await keyv.get("short")).toBeUndefined());
    expect(await keyv.get(["short", "long", "ever"])).toEqual([undefined, "2", "3"]);
    expect(await entriesOf(keyv)).toEqual(
      new Map([
        ["long", "2"],
        ["ever", "3"],
      ]),
    );
  });

  test.each([
    ["false", false],
    ["null", null],
    ["zero", 0],
    ["an object", { fizz: ["buzz"] }],
    ["bytes", Buffer.from("bar")],
    ["bytes in an object", { buff: Buffer.from("buzz") }],
    ["double quotes", '"'],
    ["single quotes", "''"],
  ])("the store accepts this value: %s", async (_, value) => {
    await keyv.set("foo", value);
    expect(await keyv.get("foo")).toEqual(value);
  });

  test("the store's iterator yields every entry", async () => {
    const entries = Array.from({ length: 5 }, (_, index) => [String(index), `value ${index}`] as const);
    await Promise.all(entries.map(([key, value]) => keyv.set(key, value)));
    expect(await entriesOf(keyv)).toEqual(new Map(entries));
  });
}
