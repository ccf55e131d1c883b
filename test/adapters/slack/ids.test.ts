import { describe, expect, test } from "vitest";
import {
  createToMark,
  readMessageId,
  timeOf,
  toEphemeralId,
  toFingerprint,
  toMessageId,
} from "../../../adapters/slack/ids.ts";

describe("ids on Slack", () => {
  test("the id of a message contains its workspace, its channel and its ts", () => {
    const place = { teamId: "T01", channelId: "C02", ts: "1700000000.000100" };
    expect(toMessageId(place)).toBe("slack:T01:C02:1700000000.000100");
    expect(readMessageId(toMessageId(place))).toEqual(place);
  });

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

  test("timeOf returns when a message was written", () => expect(timeOf("1700000000.500000")).toBe(1_700_000_000_500));

  test("ids do not reveal their nonce", () => expect(toFingerprint("turn:0")).toMatch(/^[\w-]{22}$/));
});

describe("the marks that identify posts", () => {
  test("the mark of a nonce is the same in every run, and differs for another key or nonce", () => {
    const mark = createToMark("key")("turn:0");
    expect(mark).toMatch(/^[\w-]{22}$/);
    expect(createToMark("key")("turn:0")).toBe(mark);
    expect([createToMark("key")("turn:1"), createToMark("other")("turn:0"), toFingerprint("turn:0")]).not.toContain(
      mark,
    );
  });
});
