import { describe, expect, test } from "vitest";
import { readMessageId, toEphemeralId } from "../../../adapters/slack/ids.ts";

describe("ids on Slack", () => {
  test.each(["", "slack:T01:C02", "discord:1:2", "slack:T01:C02:x", "slack:T01:C02:1.2:3"])(
    "an id of something else is not read: %s",
    (id) => {
      expect(readMessageId(id)).toBeUndefined();
    },
  );

  test("the id of an ephemeral message names no message, and is the same for the same nonce", () => {
    const id = toEphemeralId("T01", "C02", "turn:0");
    expect(readMessageId(id)).toBeUndefined();
    expect(toEphemeralId("T01", "C02", "turn:0")).toBe(id);
    expect(toEphemeralId("T01", "C02", "turn:1")).not.toBe(id);
  });
});
