import { describe, expect, test } from "vitest";
import { describeConfig, describeForVisitors, secretsOf } from "../../src/config/summary.ts";
import { readConfig } from "../support/config.ts";

const FULL = {
  GATEWAY_BASE_URL: "https://gateway.example",
  GATEWAY_API_KEY: "canary-gateway",
  CHAT_MODEL: "large",
  SLACK_BOT_TOKEN: "xoxb-canary-bot",
  SLACK_APP_TOKEN: "xapp-canary-app",
  DISCORD_TOKEN: `${Buffer.from("123456789012345678").toString("base64url")}.canary.discord`,
  LOCAL_CHAT: "on",
  LOCAL_PASSWORD: "canary-password",
  METRICS_TOKEN: "canary-metrics-token",
  ADMIN_PASSWORD: "canary-admin-password",
  REDIS_URL: "redis://user:canary%40redis@redis.example:6379",
};

const INSTALLABLE = {
  SLACK_CLIENT_ID: "123.456",
  SLACK_CLIENT_SECRET: "canary-client",
  SLACK_STATE_SECRET: "canary-state-secret",
  ENCRYPTION_KEY: Buffer.alloc(32, 0xfb).toString("base64"),
  SLACK_SIGNING_SECRET: "5ec".repeat(11).slice(0, 32),
  PUBLIC_URL: "https://bot.example",
};

test("the page at the service's address says what runs, and how to switch on the chat page", () => {
  const hint = "The chat page is off. To switch it on, put LOCAL_CHAT=on into .env and restart Palaver.";
  expect(describeForVisitors(readConfig(FULL))).toEqual(["It answers on Slack and Discord.", hint]);
  expect(describeForVisitors(readConfig({ LOCAL_CHAT: "off" }))).toEqual(["No platform is connected yet.", hint]);
  expect(describeForVisitors(readConfig({ ...FULL, LOCAL_CHAT: "off", ROLE: "worker" }))).toEqual([
    "This process answers the messages that other processes receive.",
  ]);
});

describe("describeConfig", () => {
  test("describeConfig names what is off and how to switch it on", () => {
    expect(describeConfig(readConfig({}))).toEqual([
      "Gateway: the embedded sandbox, model sandbox-chat, which invents its answers (set GATEWAY_BASE_URL, GATEWAY_API_KEY and CHAT_MODEL to use a real model)",
      "Images: on, model sandbox-image",
      "Slack: off (set SLACK_BOT_TOKEN to switch it on)",
      "Discord: off (set DISCORD_TOKEN to switch it on)",
      "Local page: on",
      "Dashboard: off (set ADMIN_PASSWORD to switch it on)",
      "Storage: SQLite in ./data (set REDIS_URL to share it with other processes)",
    ]);
  });

  test("describeConfig names the fallback, and secretsOf its key", () => {
    const config = readConfig({
      ...FULL,
      CHAT_FALLBACK_MODEL: "small",
      GATEWAY_FALLBACK_BASE_URL: "https://other.example",
      GATEWAY_FALLBACK_API_KEY: "canary-second",
    });
    expect(describeConfig(config)[0]).toBe(
      "Gateway: https://gateway.example, model large, with model small and https://other.example to fall back on",
    );
    expect(secretsOf(config)).toContain("canary-second");
  });

  test("describeConfig names the fields that are added to requests, without values", () => {
    const body = '{"reasoning_effort":"canary","stream_options":{"include_usage":true}}';
    expect(describeConfig(readConfig({ GATEWAY_EXTRA_BODY: body }))[0]).toMatch(
      /model sandbox-chat, with reasoning_effort, stream_options added to each request, which invents its answers \(set/,
    );
  });

  test("describeConfig lists the policy's limits, and a money limit without a price", () => {
    const config = readConfig(FULL);
    const policy = { access: { rules: [{ deny: "pictures" }] }, quotas: { person: { month: { money: 20 } } } };
    expect(describeConfig({ ...config, policy: { ...config.policy, path: "policy.yaml", policy } })).toContain(
      "Policy: policy.yaml, 1 rule, limits: for each person 20 USD per month; no price for CHAT_MODEL large: the money limit works only if the gateway reports costs",
    );
  });

  test("describeConfig names what is on, without a secret", () => {
    const lines = describeConfig(readConfig(FULL));
    expect(lines).toEqual([
      "Gateway: https://gateway.example, model large",
      "Images: off (set IMAGE_MODEL to switch them on)",
      "Slack: on, Socket Mode, one workspace",
      "Discord: on, threads auto",
      "Local page: on, with a password",
      "Dashboard: on at /admin, with a password",
      "Storage: Redis, and SQLite in ./data for this process's own data",
    ]);
    expect(lines.join("\n")).not.toContain("canary");
  });

  test("describeConfig describes the role of one process among several", () => {
    const roleOf = (ROLE: string) =>
      describeConfig(readConfig({ ...FULL, LOCAL_CHAT: "off", ROLE })).filter((line) => line.startsWith("Role"));
    expect(roleOf("all")).toEqual([]);
    expect(roleOf("ingress")).toEqual(["Role: ingress, which receives messages and leaves answering to workers"]);
    expect(roleOf("worker")).toEqual(["Role: worker, which answers the messages that other processes receive"]);
  });

  test("describeConfig says how Slack reaches the bot and who may install it", () => {
    expect(describeConfig(readConfig(INSTALLABLE))).toContain(
      "Slack: on, HTTP at POST https://bot.example/slack/events, every workspace that installs it at https://bot.example/slack/install",
    );
  });

  test("describeConfig says what people's own images need if the gateway is elsewhere", () => {
    const far = { ...FULL, IMAGE_MODEL: "painter" };
    const withHint =
      "Images: on, model painter (set PUBLIC_URL so that people can start from their own images on every platform)";
    expect(describeConfig(readConfig(far))).toContain(withHint);
    for (const change of [{ PUBLIC_URL: "https://bot.example" }, { GATEWAY_BASE_URL: "http://127.0.0.1:8787" }]) {
      expect(describeConfig(readConfig({ ...far, ...change }))).toContain("Images: on, model painter");
    }
  });

  test("describeConfig names the shards of this process", () => {
    const config = readConfig({ DISCORD_TOKEN: FULL.DISCORD_TOKEN, SHARDS: "0,1", SHARD_COUNT: "4" });
    expect(describeConfig(config)).toContain("Discord: on, threads auto, shards 0, 1 of 4");
  });

  test("describeConfig reports that no one can talk to the bot", () => {
    expect(describeConfig(readConfig({ LOCAL_CHAT: "off" }))).toContainEqual(
      expect.stringContaining("no one can talk"),
    );
  });
});

describe("secretsOf", () => {
  test("secretsOf lists every key, token and password, including passwords inside an address", () => {
    expect(secretsOf(readConfig(FULL)).toSorted()).toEqual(
      [
        FULL.GATEWAY_API_KEY,
        FULL.SLACK_BOT_TOKEN,
        FULL.SLACK_APP_TOKEN,
        FULL.DISCORD_TOKEN,
        FULL.LOCAL_PASSWORD,
        FULL.METRICS_TOKEN,
        FULL.ADMIN_PASSWORD,
        FULL.REDIS_URL,
        "canary%40redis",
        "canary@redis",
      ].toSorted(),
    );
  });

  test("secretsOf lists all secrets of installing, and the keys of the relay", () => {
    const relayKeys = ["canary-relay-".padEnd(32, "1"), "canary-relay-".padEnd(32, "2")];
    const secrets = secretsOf(readConfig({ ...INSTALLABLE, RELAY_SECRETS: relayKeys.join(",") }));
    const { SLACK_CLIENT_ID: _id, PUBLIC_URL: _url, ...secret } = INSTALLABLE;
    expect(secrets).toEqual(expect.arrayContaining([...Object.values(secret), ...relayKeys]));
    expect(secrets).toContain("fb".repeat(32));
  });

  test("secretsOf is empty if nothing is secret", () => {
    expect(secretsOf(readConfig({ REDIS_URL: "redis://redis.example" }))).toEqual([]);
    expect(secretsOf(readConfig({}))).toEqual([]);
  });
});
