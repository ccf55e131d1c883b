import { describe, expect, test } from "vitest";
import { similarNames } from "../../src/config/misspelling.ts";

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
