import { describe, expect, test } from "vitest";
import { findConflicts } from "../../src/config/rules.ts";

describe("findConflicts", () => {
  test("findConflicts asks for the key and the model of a gateway", () => {
    const problems = findConflicts({ GATEWAY_BASE_URL: "https://gateway.example" });
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual(["GATEWAY_API_KEY", "CHAT_MODEL"]);
  });

  test("findConflicts asks where a key belongs to", () => {
    expect(findConflicts({ GATEWAY_API_KEY: "k" })).toEqual([expect.stringMatching(/^GATEWAY_BASE_URL is missing/)]);
  });

  test("findConflicts asks for both halves of a second gateway, and for the first", () => {
    const first = { GATEWAY_BASE_URL: "https://gateway.example", GATEWAY_API_KEY: "k", CHAT_MODEL: "m" };
    const second = { GATEWAY_FALLBACK_BASE_URL: "https://other.example", GATEWAY_FALLBACK_API_KEY: "k" };
    const namesOf = (given: Record<string, string>) => findConflicts(given).map((problem) => problem.split(" ")[0]);
    expect(namesOf({ ...first, ...second })).toEqual([]);
    expect(namesOf({ ...first, GATEWAY_FALLBACK_BASE_URL: "https://o.example" })).toEqual(["GATEWAY_FALLBACK_API_KEY"]);
    expect(namesOf({ ...first, GATEWAY_FALLBACK_API_KEY: "k" })).toEqual(["GATEWAY_FALLBACK_BASE_URL"]);
    expect(namesOf(second)).toEqual(["GATEWAY_BASE_URL"]);
    expect(namesOf({ CHAT_FALLBACK_MODEL: "sandbox-text" })).toEqual([]);
  });

  test("findConflicts lets the sandbox's models be chosen", () => {
    expect(findConflicts({ CHAT_MODEL: "sandbox-text" })).toEqual([]);
  });

  test("findConflicts asks for the other half of Slack's pair, whichever is missing", () => {
    expect(findConflicts({ SLACK_BOT_TOKEN: "xoxb-1" })).toEqual([
      expect.stringMatching(/SLACK_APP_TOKEN.*SLACK_SIGNING_SECRET/),
    ]);
    expect(findConflicts({ SLACK_SIGNING_SECRET: "s" })).toEqual([
      expect.stringMatching(/^SLACK_BOT_TOKEN is missing: SLACK_SIGNING_SECRET/),
    ]);
    expect(findConflicts({ SLACK_APP_TOKEN: "xapp-1", SLACK_SIGNING_SECRET: "s" })).toHaveLength(1);
  });

  describe("for several Slack workspaces", () => {
    const whole = {
      SLACK_CLIENT_ID: "1.2",
      SLACK_CLIENT_SECRET: "s",
      SLACK_STATE_SECRET: "s",
      ENCRYPTION_KEY: "k",
      SLACK_APP_TOKEN: "xapp-1",
      PUBLIC_URL: "https://bot.example",
    };

    test("is content when all of it is there", () => expect(findConflicts(whole)).toEqual([]));

    test("names everything that is missing, one sentence for each way out", () => {
      expect(findConflicts({ SLACK_CLIENT_SECRET: "s" })).toEqual([
        expect.stringMatching(/^SLACK_CLIENT_ID and SLACK_STATE_SECRET and ENCRYPTION_KEY are missing/),
        expect.stringMatching(/^SLACK_APP_TOKEN is missing.*SLACK_SIGNING_SECRET/),
        expect.stringMatching(/^PUBLIC_URL is missing/),
      ]);
      expect(findConflicts({ ...whole, ENCRYPTION_KEY: "" })).toEqual([expect.stringMatching(/^ENCRYPTION_KEY is /)]);
    });

    test("refuses the token of one workspace beside it, in one sentence", () => {
      expect(findConflicts({ SLACK_CLIENT_ID: "1.2", SLACK_BOT_TOKEN: "xoxb-1" })).toEqual([
        "SLACK_BOT_TOKEN is for one workspace and SLACK_CLIENT_ID for several: take one of the two away.",
      ]);
    });

    test("leaves somebody else's encryption key alone", () => {
      expect(findConflicts({ ENCRYPTION_KEY: "k" })).toEqual([]);
    });
  });

  test("findConflicts asks for the other half of the shards, and for shards that exist", () => {
    expect(findConflicts({ SHARDS: "0" })).toEqual([expect.stringMatching(/^SHARD_COUNT is missing/)]);
    expect(findConflicts({ SHARD_COUNT: "2" })).toEqual([expect.stringMatching(/^SHARDS is missing/)]);
    expect(findConflicts({ SHARDS: "0, 2", SHARD_COUNT: "2" })).toEqual([
      expect.stringMatching(/^SHARDS must be below/),
    ]);
    expect(findConflicts({ SHARDS: "0, 1", SHARD_COUNT: "2" })).toEqual([]);
  });

  test("findConflicts refuses a page without a password where others can reach it, and says the ways out", () => {
    for (const HOST of ["0.0.0.0", "::", "192.168.1.5", "bot.internal"]) {
      expect(findConflicts({ HOST })).toEqual([
        expect.stringMatching(/LOCAL_PASSWORD.*HOST=127\.0\.0\.1.*LOCAL_CHAT=off/),
      ]);
    }
    expect(findConflicts({ HOST: "0.0.0.0", LOCAL_PASSWORD: "p" })).toEqual([]);
    expect(findConflicts({ HOST: "0.0.0.0", LOCAL_CHAT: "off" })).toEqual([]);
    expect(findConflicts({ HOST: "0.0.0.0", DISCORD_TOKEN: "t" })).toEqual([]);
    expect(findConflicts({ HOST: "0.0.0.0", DISCORD_TOKEN: "t", LOCAL_CHAT: "on" })).toHaveLength(1);
    expect(findConflicts({ HOST: "localhost" })).toEqual([]);
  });

  test("findConflicts refuses a role that shares its work with nobody, or that one process alone can have", () => {
    const shared = { REDIS_URL: "redis://x", DISCORD_TOKEN: "t" };
    for (const ROLE of ["ingress", "worker"]) {
      expect(findConflicts({ ...shared, ROLE })).toEqual([]);
      expect(findConflicts({ DISCORD_TOKEN: "t", ROLE })).toEqual([
        `REDIS_URL is missing: ROLE=${ROLE} shares its work with other processes on a Redis.`,
      ]);
      const page = [expect.stringMatching(`^ROLE=${ROLE} has no local page.*LOCAL_CHAT=off`)];
      expect(findConflicts({ ...shared, ROLE, LOCAL_CHAT: "on" })).toEqual(page);
      expect(findConflicts({ REDIS_URL: "redis://x", ROLE })).toEqual(page);
      expect(findConflicts({ ...shared, ROLE, CONSOLE_CHAT: "on" })).toEqual([
        expect.stringMatching(`^CONSOLE_CHAT does not go with ROLE=${ROLE}`),
      ]);
    }
    expect(findConflicts({ ROLE: "all" })).toEqual([]);
  });
});
