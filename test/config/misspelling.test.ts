import { describe, expect, test } from "vitest";
import { similarNames } from "../../src/config/misspelling.ts";

const OWN_WORDS = ["SLACK", "DISCORD"];

describe("similarNames", () => {
  const known = ["DISCORD_TOKEN", "DISCORD_API_URL", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DATA_DIR", "PORT", "HOST"];

  test("similarNames finds typos", () => {
    expect(similarNames("DISCROD_TOKEN", known, OWN_WORDS)).toEqual(["DISCORD_TOKEN"]);
    expect(similarNames("DATA_DRI", known, OWN_WORDS)).toEqual(["DATA_DIR"]);
    expect(similarNames("discord_token", known, OWN_WORDS)).toEqual(["DISCORD_TOKEN"]);
  });

  test("similarNames finds a name with a missing or an extra word", () => {
    expect(similarNames("DISCORD_URL", known, OWN_WORDS)).toEqual(["DISCORD_API_URL"]);
    expect(similarNames("SLACK_BOT_USER_TOKEN", known, OWN_WORDS)).toEqual(["SLACK_BOT_TOKEN"]);
  });

  test("similarNames leaves short names, foreign words and known names alone", () => {
    for (const name of ["PORTS", "HOSTS", "MY_DATA", "SLACK_TEAM_ID", "DATABASE_URL", "DISCORD_TOKEN", "DISCORD_"]) {
      expect(similarNames(name, known, OWN_WORDS)).toEqual([]);
    }
  });
});
