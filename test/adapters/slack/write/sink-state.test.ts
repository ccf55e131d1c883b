import { describe, expect, test } from "vitest";
import { ApiError } from "../../../../adapters/slack/api/error.ts";
import { createSinkState } from "../../../../adapters/slack/write/sink-state.ts";
import { noteRefusal } from "../../../../adapters/slack/write/stream.ts";

const DAY_MS = 24 * 3_600_000;

function refusal(code: string, status = 200): ApiError {
  return new ApiError("chat.startStream", "Refused.", { code, status });
}

describe("the state that replies on Slack share", () => {
  test.each([refusal("unknown_method"), refusal("", 404), refusal("feature_not_enabled")])(
    "the adapter remembers a workspace without streams for a day: $message $code",
    (error) => {
      let now = 0;
      const state = createSinkState(() => now);
      noteRefusal("T1", "C1", error, state);
      expect([state.supports("streams", "T1", "C2"), state.supports("streams", "T2", "C1")]).toEqual([false, true]);
      now += DAY_MS;
      expect(state.supports("streams", "T1", "C2")).toBe(true);
    },
  );

  test("the shared state has a limited size, and drops its oldest entry first", () => {
    const { posted } = createSinkState(() => 0);
    for (let index = 0; index < 2_001; index++) posted.set(`${index}`, { id: `${index}` });
    expect([posted.get("0"), posted.get("1")?.id, posted.get("2000")?.id]).toEqual([undefined, "1", "2000"]);
  });
});
