import { SnowflakeUtil } from "discord.js";
import { describe, expect, test } from "vitest";
import { readMessageId, timeOf, toFingerprint, toMessageId, toNonce } from "../../../adapters/discord/ids.ts";

describe("Discord's ids", () => {
  test("a Discord id contains the time at which it was made", () => {
    expect(timeOf("175928847299117063")).toBe(1_462_015_105_796);
    expect(timeOf(String(SnowflakeUtil.generate({ timestamp: 1_700_000_000_123 })))).toBe(1_700_000_000_123);
  });

  test("a message id contains the channel too, and can be read back", () => {
    const place = { channelId: "111", messageId: "222" };
    expect(toMessageId(place)).toBe("discord:111:222");
    expect(readMessageId("discord:111:222")).toEqual(place);
    for (const other of ["slack:C1:1.2", "discord:111", "discord:111:x"]) expect(readMessageId(other)).toBeUndefined();
  });

  test("equal texts produce equal nonces of an allowed length", () => {
    expect(toNonce("turn:1")).toBe(toNonce("turn:1"));
    expect(toNonce("turn:1")).not.toBe(toNonce("turn:2"));
    expect(toNonce("x".repeat(500))).toHaveLength(22);
  });

  test("a fingerprint of a secret does not contain the secret", () => {
    expect(toFingerprint("secret-token")).not.toContain("secret");
    expect(toFingerprint("secret-token")).toBe(toFingerprint("secret-token"));
  });
});
