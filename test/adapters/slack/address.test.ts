import { describe, expect, test } from "vitest";
import { readExtra } from "../../../adapters/slack/address.ts";

describe("an address on Slack", () => {
  test("an address on Slack names the workspace of the token, and the person", () => {
    const responseUrl = "https://hooks.slack.com/1";
    const extra = { team: "T1", user: "U1", recipientTeam: "T2", responseUrl, isFromHome: "true", other: "x" };
    const { other: _, ...known } = extra;
    expect(readExtra({ platform: "slack", channelId: "C1", extra })).toEqual(known);
    expect(readExtra({ platform: "slack", channelId: "C1", extra: { team: "T1" } })).toEqual({ team: "T1" });
  });

  test("the adapter rejects an address on Slack without a workspace", () => {
    expect(() => readExtra({ platform: "slack", channelId: "C1" })).toThrow(/no workspace/);
  });
});
