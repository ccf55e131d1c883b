import { describe, expect, test } from "vitest";
import { findConflicts as findOwnConflicts } from "../../src/config/rules.ts";
import { isSwitchedOn } from "../../src/port/module.ts";
import type { GivenVariables } from "../../src/port/variables.ts";
import { modules } from "../support/config.ts";

/** The conflicts that the core and the platforms find. */
function findConflicts(given: GivenVariables): string[] {
  const isAlone = !modules.some((module) => isSwitchedOn(module, given));
  const problems = modules.flatMap((module) => module.readConfig(given, isAlone).problems);
  return [
    ...findOwnConflicts(given),
    ...problems.flatMap(({ variable, what }) => (variable === undefined ? [what] : [])),
  ];
}

describe("findConflicts", () => {
  test("findConflicts asks for the key and the model of a gateway", () => {
    const problems = findConflicts({ GATEWAY_BASE_URL: "https://gateway.example" });
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual(["GATEWAY_API_KEY", "CHAT_MODEL"]);
  });

  test("findConflicts asks for the address that a key belongs to", () => {
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

  test("findConflicts accepts a choice of the sandbox's models", () => {
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

    test("several Slack workspaces have no conflict if everything is set", () =>
      expect(findConflicts(whole)).toEqual([]));

    test("several Slack workspaces report every missing variable, with one sentence for each fix", () => {
      expect(findConflicts({ SLACK_CLIENT_SECRET: "s" })).toEqual([
        expect.stringMatching(/^SLACK_CLIENT_ID and SLACK_STATE_SECRET and ENCRYPTION_KEY are missing/),
        expect.stringMatching(/^SLACK_APP_TOKEN is missing.*SLACK_SIGNING_SECRET/),
        expect.stringMatching(/^PUBLIC_URL is missing/),
      ]);
      expect(findConflicts({ ...whole, ENCRYPTION_KEY: "" })).toEqual([expect.stringMatching(/^ENCRYPTION_KEY is /)]);
    });

    test("several Slack workspaces reject the token of one workspace with one sentence", () => {
      expect(findConflicts({ SLACK_CLIENT_ID: "1.2", SLACK_BOT_TOKEN: "xoxb-1" })).toEqual([
        "SLACK_BOT_TOKEN is for one workspace and SLACK_CLIENT_ID for several: remove one of the two.",
      ]);
    });

    test("findConflicts ignores another program's encryption key", () => {
      expect(findConflicts({ ENCRYPTION_KEY: "k" })).toEqual([]);
    });
  });

  test("findConflicts requires SHARDS and SHARD_COUNT together, and shard numbers below the count", () => {
    expect(findConflicts({ SHARDS: "0" })).toEqual([expect.stringMatching(/^SHARD_COUNT is missing/)]);
    expect(findConflicts({ SHARD_COUNT: "2" })).toEqual([expect.stringMatching(/^SHARDS is missing/)]);
    expect(findConflicts({ SHARDS: "0, 2", SHARD_COUNT: "2" })).toEqual([
      expect.stringMatching(/^Every number in SHARDS must be below/),
    ]);
    expect(findConflicts({ SHARDS: "0, 1", SHARD_COUNT: "2" })).toEqual([]);
  });

  test("findConflicts refuses a page without a password that others can reach, and names the fixes", () => {
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

  test("findConflicts refuses an ingress or worker without Redis, with the local page or with the console", () => {
    const shared = { REDIS_URL: "redis://x", DISCORD_TOKEN: "t" };
    for (const ROLE of ["ingress", "worker"]) {
      expect(findConflicts({ ...shared, ROLE })).toEqual([]);
      expect(findConflicts({ DISCORD_TOKEN: "t", ROLE })).toEqual([
        `REDIS_URL is missing: ROLE=${ROLE} shares its work with other processes through Redis.`,
      ]);
      const page = [expect.stringMatching(`^ROLE=${ROLE} has no local page.*LOCAL_CHAT=off`)];
      expect(findConflicts({ ...shared, ROLE, LOCAL_CHAT: "on" })).toEqual(page);
      expect(findConflicts({ REDIS_URL: "redis://x", ROLE })).toEqual(page);
      expect(findConflicts({ ...shared, ROLE, CONSOLE_CHAT: "on" })).toEqual([
        expect.stringMatching(`^CONSOLE_CHAT needs ROLE=all.*ROLE is ${ROLE}`),
      ]);
    }
    expect(findConflicts({ ROLE: "all" })).toEqual([]);
  });
});
