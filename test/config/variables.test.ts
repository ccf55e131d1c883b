import { describe, expect, test } from "vitest";
import { z } from "zod";
import { variables as own } from "../../src/config/variables.ts";
import { isLoopback } from "../../src/port/variables.ts";
import { modules } from "../support/config.ts";

const variables = z.object(Object.assign({}, own, ...modules.map((module) => module.variables.schemas)));

/** The problem with a value. Undefined if the value is valid. */
function complaint(name: string, value: string): string | undefined {
  return variables.safeParse({ [name]: value }).error?.issues[0]?.message;
}

describe("variables", () => {
  test.each([
    ["GATEWAY_BASE_URL", "gateway.example", /starts with https/],
    ["GATEWAY_BASE_URL", "ftp://gateway.example", /starts with https/],
    ["GATEWAY_BASE_URL", "https://user:word@gateway.example", /without a password/],
    ["GATEWAY_BASE_URL", "https://gateway.example?key=1", /without a password or a query/],
    ["GATEWAY_API_KEY", "two words", /only the key/],
    ["GATEWAY_API_KEY", "key\nx", /only the key/],
    ["GATEWAY_IMAGE_KEY_HEADER", "authorization", /x-<vendor>-api-key/],
    ["CHAT_MODEL", "my model", /without spaces/],
    ["SLACK_BOT_TOKEN", "xoxp-1", /xoxb-.*a user token \(xoxp-\) was given/],
    ["SLACK_BOT_TOKEN", "xapp-1", /an app-level token \(xapp-\) was given/],
    ["SLACK_BOT_TOKEN", "xoxs-1", /another kind of token \(xoxs-\) was given/],
    ["SLACK_APP_TOKEN", "xoxb-1", /xapp-.*a bot token \(xoxb-\) was given/],
    ["SLACK_APP_TOKEN", "hello", /something else was given/],
    ["SLACK_SIGNING_SECRET", "xoxb-1", /not a token/],
    ["SLACK_CLIENT_ID", "A0123", /two numbers separated by a dot/],
    ["SLACK_STATE_SECRET", "short", /16 characters/],
    ["ENCRYPTION_KEY", "abc", /32 bytes/],
    ["ENCRYPTION_KEY", "0f".repeat(16), /32 bytes/],
    ["ENCRYPTION_KEY", "!".repeat(43), /32 bytes/],
    ["SLACK_ALLOWED_BOTS", "deploybot", /ids of bots/],
    ["FETCH_URL_HOSTS", "*", /hosts like/],
    ["FETCH_URL_HOSTS", "127.0.0.1", /hosts like/],
    ["FETCH_URL_HOSTS", "https://docs.example.com/guide", /hosts like/],
    ["FETCH_URL_HOSTS", "docs.example.com,http://wiki.internal:80800", /hosts like/],
    ["FETCH_URL_HOSTS", "http://[::1", /hosts like/],
    ["SLACK_API_URL", "https://slack.example/api", /end in \/api\//],
    ["DISCORD_TOKEN", "Bot abc.def.ghi", /only the key|without "Bot"/],
    ["DISCORD_TOKEN", "123456789012345678", /not the application id/],
    ["DISCORD_TOKEN", "0f".repeat(32), /not the public key/],
    ["DISCORD_THREADS", "yes", /one of auto, on, off/],
    ["IMAGE_API", "gemini", /one of auto, generate-content, images, chat/],
    ["SHARDS", "0-3", /like 0,1/],
    ["SHARD_COUNT", "0", /from 1/],
    ["RELAY_SECRETS", `${"a".repeat(32)},short`, /32 characters/],
    ["IMAGINE_MAX_REFERENCES", "17", /from 1 to 16/],
    ["REDIS_URL", "http://127.0.0.1", /redis:\/\/host:6379/],
    ["HOST", "http://127.0.0.1", /without a scheme/],
    ["HOST", "127.0.0.1:80", /not have a port/],
    ["PORT", "65536", /from 0 to 65535/],
    ["PORT", "-1", /from 0 to 65535/],
    ["PORT", "3e3", /from 0 to 65535/],
    ["PUBLIC_URL", "http://bot.example", /https/],
    ["LOCAL_CHAT", "true", /one of auto, on, off/],
    ["LOCAL_PASSWORD", "short", /8 characters/],
    ["ROLE", "boss", /one of all, ingress, worker/],
    ["LOG_LEVEL", "verbose", /one of trace/],
    ["HISTORY_MAX_MESSAGES", "0", /from 1/],
    ["SHUTDOWN_GRACE_SECONDS", "1.5", /whole number/],
  ] as const)("the variable %s rejects %s", (name, value, message) => {
    expect(complaint(name, value)).toMatch(message);
  });

  test.each([
    ["GATEWAY_BASE_URL", "http://127.0.0.1:8787"],
    ["GATEWAY_BASE_URL", "https://gateway.example/team/v2"],
    ["GATEWAY_IMAGE_KEY_HEADER", "x-goog-api-key"],
    ["CHAT_MODEL", "vendor/large-2:free"],
    ["SLACK_BOT_TOKEN", "xoxe.xoxb-1-abc"],
    ["DISCORD_TOKEN", "anything-a-simulator-likes"],
    ["DISCORD_API_URL", "http://127.0.0.1:5000/api/"],
    ["REDIS_URL", "rediss://user:word@redis.example:6380"],
    ["HOST", "::1"],
    ["HOST", "bot.internal"],
    ["PUBLIC_URL", "http://localhost:3000"],
    ["PUBLIC_URL", "http://[::1]:3000/bot/"],
  ] as const)("the variable %s accepts %s", (name, value) => {
    expect(complaint(name, value)).toBeUndefined();
  });
});

test.each([
  ["GATEWAY_BASE_URL", "https://gateway.example/team/v1beta/", "https://gateway.example/team"],
  ["DISCORD_API_URL", "https://discord.example/api/v10", "https://discord.example/api"],
] as const)("the service reads %s=%s without the version", (name, value, address) => {
  expect(variables.parse({ [name]: value })[name]).toBe(address);
});

test("isLoopback recognises the addresses of this machine", () => {
  expect(["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"].filter(isLoopback)).toHaveLength(6);
  expect(["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example", "localhost.example", ""].filter(isLoopback)).toEqual([]);
});
