import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createIdentify } from "../../../../adapters/discord/hear/identify.ts";
import { silent } from "../../../../lab/support/log.ts";

const LIMIT = { max_concurrency: 1, remaining: 100, reset_after: 0, total: 1_000 };
const never = new AbortController().signal;

/** Reports each turn after this many milliseconds, on a clock that only these calls move. */
function start(lates: number[]) {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const taken: string[] = [];
  const identify = createIdentify({
    gateway: { read: async () => ({ url: "", shards: 1, session_start_limit: LIMIT }) },
    async takeTurn(name) {
      taken.push(name);
      nowMs += lates.shift() ?? 0;
      return true;
    },
    log: silent,
  });
  return { identify, taken };
}

describe("the start of a Discord session", () => {
  test("a session starts when its turn comes, even if an earlier turn is reported late", async () => {
    const { identify, taken } = start([0, 900]);
    await identify(0, never);
    expect(taken).toHaveLength(1);
    await identify(0, never);
    expect(taken).toHaveLength(3);
  });

  test("a session starts at the third turn if all are reported late", async () => {
    const { identify, taken } = start([900, 900, 900, 900]);
    await identify(0, never);
    expect(taken).toHaveLength(3);
  });
});
