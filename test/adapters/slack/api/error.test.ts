import { describe, expect, test } from "vitest";
import { codeOf, describeAuthError, isHopeless, SlackApiError } from "../../../../adapters/slack/api/error.ts";

const refused = (code: string) => new SlackApiError("auth.test", "Slack refused it.", { code, status: 200 });

describe("a token that Slack refuses", () => {
  test("is told from other failures", () => {
    expect(["invalid_auth", "token_revoked", "account_inactive"].map((code) => isHopeless(refused(code)))).toEqual([
      true,
      true,
      true,
    ]);
    expect([refused("internal_error"), refused(""), new Error("away"), undefined].map(isHopeless)).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(codeOf({ data: { error: 5 } })).toBe("");
  });

  test("is named with what to do about it", () => {
    expect(describeAuthError(refused("invalid_auth"), "bot")).toMatch(/bot token \(invalid_auth\).*SLACK_BOT_TOKEN/);
    expect(describeAuthError(refused(""), "app")).toMatch(/app-level token \(refused\).*connections:write/);
  });
});
