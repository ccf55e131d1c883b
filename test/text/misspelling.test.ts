import { assert, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { editDistance, similarNames } from "../../src/text/misspelling.ts";

describe("editDistance", () => {
  test.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["abc", "abd", 1],
    ["abc", "acb", 1],
    ["abcd", "badc", 2],
    ["LOG_LEVEL", "LOG_LVEEL", 1],
    ["kitten", "sitting", 3],
  ])("from %j to %j is %i", (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
  });

  test("is the same both ways, zero only for equals, and at most the longer length", () => {
    const text = string({ maxLength: 12 });
    assert(
      property(text, text, (a, b) => {
        const distance = editDistance(a, b);
        expect(editDistance(b, a)).toBe(distance);
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});

describe("similarNames", () => {
  const known = ["DISCORD_TOKEN", "DISCORD_API_URL", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DATA_DIR", "PORT", "HOST"];

  test("finds slips of the finger", () => {
    expect(similarNames("DISCROD_TOKEN", known)).toEqual(["DISCORD_TOKEN"]);
    expect(similarNames("DATA_DRI", known)).toEqual(["DATA_DIR"]);
    expect(similarNames("discord_token", known)).toEqual(["DISCORD_TOKEN"]);
  });

  test("finds the right words in the wrong number", () => {
    expect(similarNames("DISCORD_URL", known)).toEqual(["DISCORD_API_URL"]);
    expect(similarNames("SLACK_BOT_USER_TOKEN", known)).toEqual(["SLACK_BOT_TOKEN"]);
  });

  test("leaves short names, foreign words and known names alone", () => {
    for (const name of ["PORTS", "HOSTS", "MY_DATA", "SLACK_TEAM_ID", "DATABASE_URL", "DISCORD_TOKEN", "DISCORD_"]) {
      expect(similarNames(name, known)).toEqual([]);
    }
  });
});
