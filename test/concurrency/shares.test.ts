import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { claimShare, leaveShares, NO_SHARES, type Shares } from "../../src/concurrency/shares.ts";
import type { Claim } from "../../src/port/shares.ts";

const MEMBER_MS = 3_000;

/** Processes that claim shares in turn until nothing changes. Each one connects its shares before the next claim. */
function createWorld(count: number, atOnce = 1) {
  let shares: Shares = NO_SHARES;
  let now = 0;
  const inUse = new Map<string, readonly number[]>();
  const leaving = new Set<string>();
  let connected = 0;

  function claim(id: string, given: Partial<Claim> = {}) {
    const known = { id, count, atOnce, inUse: inUse.get(id) ?? [], isLeaving: leaving.has(id), forMs: MEMBER_MS, now };
    const { after, share } = claimShare(shares, { ...known, ...given });
    shares = after;
    connected += share.own.filter((part) => !known.inUse.includes(part)).length;
    inUse.set(id, share.own);
    return share;
  }
  return {
    claim,
    inUse,
    leaving,
    connected: () => connected,
    pass: (ms: number) => void (now += ms),
    leave(id: string) {
      shares = leaveShares(shares, id);
      inUse.delete(id);
    },
    settle(ids: readonly string[]) {
      for (let round = 0; round < 3 * count + 3; round++) for (const id of ids) claim(id);
    },
    sizes: (ids: readonly string[]) => ids.map((id) => inUse.get(id)?.length ?? 0),
  };
}

describe("shares of work divided among processes", () => {
  test("a single process gets all shares, one at a time", () => {
    const world = createWorld(3);
    expect(world.claim("a")).toEqual({ own: [0], inherited: [], isOpen: true, isAlone: true });
    expect(world.claim("a").own).toEqual([0, 1]);
    expect(world.claim("a")).toEqual({ own: [0, 1, 2], inherited: [1], isOpen: false, isAlone: true });
  });

  test("processes that start together get equal numbers of shares, and connect each share once", () => {
    const world = createWorld(5);
    world.settle(["a", "b"]);
    expect(world.sizes(["a", "b"])).toEqual([3, 2]);
    expect(world.connected()).toBe(5);
  });

  test("a share moves to a new process, which uses it before the old process releases it", () => {
    const world = createWorld(2);
    world.settle(["a"]);
    expect(world.claim("b").own).toHaveLength(1);
    // The process is still connecting.
    expect(world.claim("a").own).toEqual([0, 1]);
    expect(world.claim("b").inherited).toEqual([]);
    expect(world.claim("a").own).toHaveLength(1);
    expect(world.connected()).toBe(3);
  });

  test("a share leaves a process that shuts down only once another process uses it", () => {
    const world = createWorld(1);
    world.settle(["a", "b"]);
    world.leaving.add("a");
    expect(world.claim("a")).toMatchObject({ own: [0], isAlone: false });
    expect(world.claim("b").own).toEqual([0]);
    expect(world.claim("a").own).toEqual([0]);
    world.claim("b");
    expect(world.claim("a").own).toEqual([]);
  });

  test("the other processes divide the shares of a process that is gone", () => {
    const world = createWorld(4);
    world.settle(["a", "b", "c"]);
    world.leave("a");
    world.settle(["b", "c"]);
    expect(world.sizes(["b", "c"])).toEqual([2, 2]);
  });

  test("a share becomes free if its holder is silent for too long, and the holder gets back only free shares", () => {
    const world = createWorld(2);
    world.settle(["a", "b"]);
    world.pass(MEMBER_MS);
    // The process has not connected the other process's share yet.
    expect(world.claim("b").own).toEqual([0, 1]);
    world.inUse.set("b", [1]);
    expect(world.claim("a").own).toEqual([0]);
    expect(world.claim("b").own).toEqual([1]);
  });

  test("a share stays with its new holder when the silent holder comes back", () => {
    const world = createWorld(1);
    world.settle(["a"]);
    world.pass(MEMBER_MS);
    expect(world.claim("b").inherited).toEqual([]);
    expect(world.claim("b").inherited, "it has it in use now").toEqual([0]);
    expect(world.claim("b").inherited).toEqual([]);
    expect(world.claim("a").own).toEqual([]);
  });

  test("no share goes to a process that cannot accept any now", () => {
    const world = createWorld(2);
    expect(world.claim("a", { atOnce: 0 })).toEqual({ own: [], inherited: [], isOpen: true, isAlone: true });
  });

  test("each share has one holder, and the numbers differ by one at most and settle, however processes come and go", () => {
    const steps = fc.array(fc.record({ id: fc.constantFrom("a", "b", "c", "d"), leaves: fc.boolean() }), {
      size: "+1",
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 4 }), steps, (count, atOnce, comings) => {
        const world = createWorld(count, atOnce);
        const present = new Set(["z"]);
        for (const { id, leaves } of comings) {
          if (leaves && present.delete(id)) world.leave(id);
          else if (!leaves) present.add(id);
          for (const one of present) world.claim(one);
        }
        const ids = [...present];
        world.settle(ids);
        const all = ids.flatMap((id) => world.inUse.get(id) ?? []);
        expect(all.toSorted((one, other) => one - other)).toEqual([...Array(count).keys()]);
        const sizes = world.sizes(ids);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        const before = world.connected();
        world.settle(ids);
        expect(world.connected()).toBe(before);
      }),
    );
  });
});
