import { describe, expect, test } from "vitest";
import { describeConfig, secretsOf } from "../../src/config/summary.ts";
import { readConfig } from "../../src/config.ts";

const FULL = {
  GATEWAY_BASE_URL: "https://gateway.example",
  GATEWAY_API_KEY: "canary-gateway",
  CHAT_MODEL: "large",
  SLACK_BOT_TOKEN: "xoxb-canary-bot",
  SLACK_APP_TOKEN: "xapp-canary-app",
  DISCORD_TOKEN: "canary.discord.token",
  LOCAL_CHAT: "on",
  LOCAL_PASSWORD: "canary-password",
  REDIS_URL: "redis://user:canary%40redis@redis.example:6379",
};

describe("describeConfig", () => {
  test("says what is off and what switches it on", () => {
    expect(describeConfig(readConfig({}))).toEqual([
      "Gateway: the embedded sandbox, model sandbox-chat (set GATEWAY_BASE_URL, GATEWAY_API_KEY and CHAT_MODEL to use a real one)",
      "Pictures: model sandbox-image is set, but this version does not draw yet",
      "Slack: off (set SLACK_BOT_TOKEN and SLACK_APP_TOKEN to switch it on)",
      "Discord: off (set DISCORD_TOKEN to switch it on)",
      "Local page: on",
      "Storage: SQLite in ./data (set REDIS_URL to keep histories in Redis)",
    ]);
  });

  test("says what is on, without a secret", () => {
    const lines = describeConfig(readConfig(FULL));
    expect(lines).toEqual([
      "Gateway: https://gateway.example, model large",
      "Pictures: off",
      "Slack: configured, but this version has no adapter for it yet, so nothing happens there",
      "Discord: on, threads auto",
      "Local page: on, with a password",
      "Storage: histories in Redis, accepted messages in SQLite in ./data",
    ]);
    expect(lines.join("\n")).not.toContain("canary");
  });

  test("says when there is nowhere to talk to the bot", () => {
    expect(describeConfig(readConfig({ LOCAL_CHAT: "off" }))).toContainEqual(
      expect.stringContaining("nowhere to talk"),
    );
  });
});

describe("secretsOf", () => {
  test("lists every key, token and password, also as it is inside an address", () => {
    expect(secretsOf(readConfig(FULL)).toSorted()).toEqual(
      [
        FULL.GATEWAY_API_KEY,
        FULL.SLACK_BOT_TOKEN,
        FULL.SLACK_APP_TOKEN,
        FULL.DISCORD_TOKEN,
        FULL.LOCAL_PASSWORD,
        FULL.REDIS_URL,
        "canary%40redis",
        "canary@redis",
      ].toSorted(),
    );
  });

  test("knows Slack's signing secret", () => {
    expect(secretsOf(readConfig({ SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: "5ec" }))).toContain("5ec");
  });

  test("lists nothing when nothing is secret", () => {
    expect(secretsOf(readConfig({ REDIS_URL: "redis://redis.example" }))).toEqual([]);
    expect(secretsOf(readConfig({}))).toEqual([]);
  });
});
