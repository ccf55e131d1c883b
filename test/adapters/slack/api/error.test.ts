import { describe, expect, test } from "vitest";
import { ApiError, codeOf, describeAuthError, isHopeless } from "../../../../adapters/slack/api/error.ts";

const refused = (code: string) => new ApiError("auth.test", "Slack refused it.", { code, status: 200 });

describe("a token that Slack refuses", () => {
  test("the Slack client distinguishes a refused token from other failures", () => {
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

  test("the error of a refused token says what to do", () => {
    expect(describeAuthError(refused("invalid_auth"), "bot")).toMatch(/bot token \(invalid_auth\).*SLACK_BOT_TOKEN/);
    expect(describeAuthError(refused(""), "app")).toMatch(/app-level token \(refused\).*connections:write/);
  });
});
