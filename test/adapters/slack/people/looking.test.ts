import { expect, test } from "vitest";
import { readLookedAt } from "../../../../adapters/slack/people/looking.ts";

const channel = { type: "slack#/types/channel_id", value: "C1", team_id: "T1" };

test("the channel that somebody looks at on Slack is the first channel in the context", () => {
  const canvas = { type: "slack#/types/canvas_id", value: "F1" };
  const message = { type: "slack#/types/message_context", value: { channel_id: "C2", message_ts: "1.2" } };
  expect(readLookedAt({ entities: [canvas, message, channel] })).toBe("C2");
  expect(readLookedAt({ channel_id: "C3", team_id: "T1", enterprise_id: null })).toBe("C3");
  for (const nothing of [undefined, null, {}, { entities: [canvas] }, { entities: [{}] }, "C1"]) {
    expect(readLookedAt(nothing)).toBeUndefined();
  }
});
