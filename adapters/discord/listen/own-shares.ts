import type { ShardShares } from "../options.ts";

/** The shards of a process that shares with none: these, or all there are. */
export function createOwnShares(ids?: readonly number[]): ShardShares {
  const turns = new Map<string, number>();
  return {
    claim: async ({ count }) => ({ own: ids ?? [...Array(count).keys()], isOpen: false, isAlone: true }),
    leave: async () => {},
    async takeTurn(name, everyMs) {
      if ((turns.get(name) ?? 0) > performance.now()) return false;
      turns.set(name, performance.now() + everyMs);
      return true;
    },
  };
}
