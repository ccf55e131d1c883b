import { expect, test } from "vitest";
import { createLooking, readLookedAt } from "../../../../adapters/slack/people/looking.ts";

const place = { teamId: "T1", channelId: "D1" };
const at = (value: string) => ({ entities: [{ type: "slack#/types/channel_id", value, team_id: "T1" }] });

test("what somebody looks at on Slack is the first channel of what it tells", () => {
  const canvas = { type: "slack#/types/canvas_id", value: "F1" };
  const message = { type: "slack#/types/message_context", value: { channel_id: "C2", message_ts: "1.2" } };
  expect(readLookedAt({ entities: [canvas, message, ...at("C1").entities] })).toBe("C2");
  expect(readLookedAt({ channel_id: "C3", team_id: "T1", enterprise_id: null })).toBe("C3");
  for (const nothing of [undefined, null, {}, { entities: [canvas] }, { entities: [{}] }, "C1"]) {
    expect(readLookedAt(nothing)).toBeUndefined();
  }
});

test("a message's own context counts, then what was told of its thread, then of the conversation", () => {
  const looking = createLooking();
  const thread = { ...place, threadTs: "1.0" };
  looking.note(place, at("C1"));
  looking.note(thread, { channel_id: "C2" });
  expect(looking.at(thread, at("C3"))).toBe("C3");
  expect(looking.at(thread, {})).toBeUndefined();
  expect(looking.at(thread, undefined)).toBe("C2");
  expect(looking.at({ ...place, threadTs: "2.0" }, undefined)).toBe("C1");
  expect(looking.at({ ...place, teamId: "T2" }, undefined)).toBeUndefined();
  looking.note(place, {});
  expect(looking.at(place, undefined)).toBeUndefined();
});
