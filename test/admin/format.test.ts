import { expect, test } from "vitest";
import { describeReason } from "../../src/admin/page/format.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { describeEnding } from "../../src/turn/endings.ts";

const reasonOf = (error: unknown) => {
  const { outcome, note } = describeEnding({ error }, { model: "gpt-4.1", now: 0 });
  return describeReason({ outcome, note: note.replace(/^_|_$/g, "") });
};

test("the reason of a failure is the first sentence that users saw", () => {
  expect(reasonOf(new GatewayError("rejected", "", { reason: "unknown-model" }))).toBe(
    "The AI service has no model gpt-4.1 for this bot",
  );
  expect(reasonOf(new GatewayError("unreachable", ""))).toBe("I can't reach the AI service");
  // The wait time differs between failures, so the reason leaves it out.
  expect(reasonOf(new GatewayError("overloaded", "", { status: 503, retryAfterMs: 7_000 }))).toBe(
    "The AI service is overloaded right now",
  );
});

test("the reason of an answer without a sentence describes how it ended", () => {
  expect(describeReason({ outcome: "interrupted" })).toBe("Broke off");
  expect(describeReason({ outcome: "complete" })).toBe("Answered");
  expect(describeReason({ outcome: "stopped", note: "Ada stopped this answer." })).toBe("Stopped on request");
});
