import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { History } from "../../src/history/history.ts";
import type { Entries } from "../../src/store/keyv.ts";
import { answered, said, uniqueId } from "../support/history-contract.ts";
import { openHistory } from "../support/history-store.ts";

const { database, history, open, toHistory } = openHistory();
let conversation: string;
beforeEach(() => {
  conversation = uniqueId();
});

const ask = (id: string, after?: string) => history.append(conversation, said(id, id), [], after);
const answer = (id: string, after: string) => history.append(conversation, answered(id, id), [`${id}-post`], after);
const ids = async (options: { maxEntries?: number; beforeId?: string; upToId?: string } = {}) =>
  (await history.read(conversation, { maxEntries: 100, ...options })).entries.map(({ id }) => id);

function names<const Names extends string[]>(...list: Names): { [Index in keyof Names]: string } {
  return list.map((name) => uniqueId(name)) as { [Index in keyof Names]: string };
}

/** Two branches after a common beginning. Each has a question and its answer. Ids are in the order of writing. */
async function fork() {
  const all = names("q0", "a0", "q1", "a1", "q2", "a2");
  const [q0, a0, q1, a1, q2, a2] = all;
  await ask(q0);
  await answer(a0, q0);
  await ask(q1, a0);
  await answer(a1, q1);
  await ask(q2, a0);
  await answer(a2, q2);
  return all;
}

/** A history whose process ends between the two steps of a person's erasure. */
function failingHistory(): History {
  const cut = (keyv: Entries) => Object.assign(keyv, { eraseOf: () => Promise.reject(new Error("cut off")) });
  return toHistory((name) => cut(open(name)));
}

/** A history that counts the keys of each read. */
function countingHistory(): { counting: History; keysRead: number[] } {
  const keysRead: number[] = [];
  const count = (keyv: Entries) => {
    const getMany = keyv.getMany.bind(keyv) as (keys: string[]) => Promise<never>;
    keyv.getMany = (keys: string[]) => {
      keysRead.push(keys.length);
      return getMany(keys);
    };
    return keyv;
  };
  return { counting: toHistory((name) => count(open(name))), keysRead };
}

describe("a branch of the history", () => {
  test("a branch shows the entries that it continues, and nothing written since", async () => {
    const [q0, a0, q1, a1, q2, a2] = names("q0", "a0", "q1", "a1", "q2", "a2");
    await ask(q0);
    await answer(a0, q0);
    await ask(q1, `${a0}-post`);
    await answer(a1, q1);
    await ask(q2, a0);
    await answer(a2, q2);
    expect(await ids()).toEqual([q0, a0, q2, a2]);
    expect(await ids({ upToId: a1 })).toEqual([q0, a0, q1, a1]);
    expect(await ids({ upToId: `${a2}-post` })).toEqual([q0, a0, q2, a2]);
    expect(await ids({ beforeId: a2 })).toEqual([q0, a0, q2]);
    expect(await ids({ beforeId: q2 })).toEqual([q0, a0]);
    expect(await ids({ upToId: uniqueId() })).toEqual([]);
  });

  test("a message without a predecessor continues all earlier entries, including a branch", async () => {
    const [q0, a0, q1, a1, q2, q3] = names("q0", "a0", "q1", "a1", "q2", "q3");
    await ask(q0);
    await answer(a0, q0);
    await ask(q1);
    await answer(a1, q1);
    await ask(q2, a0);
    await ask(q3);
    expect(await ids({ upToId: q2 })).toEqual([q0, a0, q2]);
    expect(await ids()).toEqual([q0, a0, q1, a1, q2, q3]);
  });

  test("a branch does not break if messages in its middle are erased", async () => {
    const [q0, a0, , , q2, a2] = await fork();
    const q3 = uniqueId("q3");
    await ask(q3, a2);
    expect(await history.remove(q2)).toBe(true);
    expect(await history.remove(q2)).toBe(false);
    expect(await ids()).toEqual([q0, a0, a2, q3]);
    await history.remove(`${a2}-post`);
    expect(await ids()).toEqual([q0, a0, q3]);
    await history.remove(a0);
    expect(await ids()).toEqual([q0, q3]);
  });

  test("a branch does not break if a person in its middle is erased without a trace", async () => {
    const [q0, a0, q1, a1, q2, a2, q3] = names("q0", "a0", "q1", "a1", "q2", "a2", "q3");
    const [ben, id] = [uniqueId("ben"), { platform: "test" }];
    await ask(q0);
    await answer(a0, q0);
    await ask(q1, a0);
    await answer(a1, q1);
    await history.append(conversation, said(q2, "secret", { ...id, id: ben, name: ben }), [], a0);
    await history.append(conversation, answered(a2, "secret", { ...id, id: ben }), [], q2);
    await ask(q3, a2);
    expect(await history.forgetAuthor("test", ben)).toBe(2);
    expect(await ids()).toEqual([q0, a0, q3]);
    expect(await history.find(q2)).toBeUndefined();
    expect(await history.forgetAuthor("test", ben)).toBe(0);
    expect(await ids()).toEqual([q0, a0, q3]);
  });

  test("a branch does not break if the erasure of a person was interrupted, and the erasure can be completed", async () => {
    const [q0, a0, q1, q2, q3] = names("q0", "a0", "q1", "q2", "q3");
    const cleo = uniqueId("cleo");
    await ask(q0);
    await answer(a0, q0);
    await ask(q1, a0);
    await history.append(conversation, said(q2, "x", { platform: "test", id: cleo, name: cleo }), [], a0);
    await ask(q3, q2);
    await expect(failingHistory().forgetAuthor("test", cleo)).rejects.toThrow("cut off");
    await history.forgetAuthor("test", cleo);
    expect(await ids()).toEqual([q0, a0, q3]);
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toContain(encodeURIComponent(cleo));
  });

  test("a branch does not move if one of its entries is written again", async () => {
    const [q0, a0, , a1, q2, a2] = await fork();
    await history.edit(q2, "changed", []);
    await ask(q2);
    await answer(a2, a1);
    expect(await ids()).toEqual([q0, a0, q2, a2]);
  });

  test("a branch from an unknown message does not exist", async () => {
    const [q0, a0, q1] = names("q0", "a0", "q1");
    await ask(q0);
    await answer(a0, q0);
    await ask(q1, uniqueId());
    expect(await ids()).toEqual([q0, a0, q1]);
  });

  test("a branch can be read in pages, each from the oldest entry of the previous page", async () => {
    const all = Array.from({ length: 20 }, (_, index) => uniqueId(`e${index}`));
    for (const [index, id] of all.entries()) {
      await ask(id, all[index - 1]);
      await ask(uniqueId("other"), all[0]);
    }
    const pages: string[][] = [];
    let upToId = all.at(-1) ?? "";
    let { entries, hasOlder } = await history.read(conversation, { maxEntries: 6, upToId });
    for (; ; { entries, hasOlder } = await history.read(conversation, { maxEntries: 6, beforeId: upToId })) {
      pages.unshift(entries.map(({ id }) => id));
      upToId = entries[0]?.id ?? "";
      if (!hasOlder) break;
    }
    expect(pages.flat()).toEqual(all);
  });

  test("reading a branch costs as much as the window, however much was written on others", async () => {
    const { counting, keysRead } = countingHistory();
    const chain: string[] = [];
    for (let index = 0; index < 30; index++) {
      const id = uniqueId("on");
      await ask(id, chain.at(-1));
      chain.push(id);
      for (let other = 0; other < 40; other++) await ask(uniqueId("off"), chain[0]);
    }
    const { entries, hasOlder } = await counting.read(conversation, { maxEntries: 10, upToId: chain.at(-1) ?? "" });
    expect(entries.map(({ id }) => id)).toEqual(chain.slice(-10));
    expect(hasOlder).toBe(true);
    expect(keysRead.length).toBeLessThanOrEqual(12);
    expect(keysRead.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(110);
  });

  test("a branch is followed past erased entries, but not without limit", async () => {
    const { counting, keysRead } = countingHistory();
    const erased = Array.from({ length: 1_500 }, () => uniqueId("gone"));
    for (const id of erased) await ask(id);
    for (const id of erased.slice(1)) await history.remove(id);
    const newest = uniqueId("new");
    await ask(newest);
    const { entries, hasOlder } = await counting.read(conversation, { maxEntries: 10 });
    expect([entries.map(({ id }) => id), hasOlder]).toEqual([[newest], true]);
    expect(keysRead.reduce((sum, count) => sum + count, 0)).toBeLessThan(1_100);
  });

  test("a branch is the path to the beginning, whatever the tree and the erasures", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ parent: fc.nat(), isErased: fc.boolean() }), { minLength: 1, maxLength: 25 }),
        fc.nat(),
        async (steps, chosen) => {
          conversation = uniqueId();
          const tree: Array<{ id: string; parent: number; isErased: boolean }> = [];
          for (const [index, { parent, isErased }] of steps.entries()) {
            const node = { id: uniqueId("n"), parent: index === 0 ? -1 : parent % index, isErased };
            await ask(node.id, tree[node.parent]?.id);
            tree.push(node);
          }
          const expected: string[] = [];
          const start = chosen % tree.length;
          for (let at = start; at >= 0; at = tree[at]?.parent ?? -1) {
            const node = tree[at];
            if (node !== undefined && (at === start || !node.isErased)) expected.unshift(node.id);
          }
          for (const [index, { id, isErased }] of tree.entries())
            if (isErased && index !== start) await history.remove(id);
          expect(await ids({ upToId: tree[start]?.id ?? "" })).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });
});
