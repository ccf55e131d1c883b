import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { start } from "../sandbox/sandbox.ts";
import { type DiscordOptions, startDiscord } from "../simulators/discord/index.ts";
import { startSlack } from "../simulators/slack/slack.ts";
import { listenUntilTestEnds } from "../support/listen.ts";
import { isRedisMissing, startRedis } from "../support/redis.ts";
import { makeDataDir, PROCESS_ENV } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The first part of a token of a bot that nobody has. */
const WRONG_BOT = Buffer.from("123456789012345678").toString("base64url");

interface Diagnosis {
  code: number | null;
  output: string;
  /** Lines that say that something is wrong. */
  wrong: string[];
}

async function runDoctor(env: Record<string, string>, args: readonly string[] = []): Promise<Diagnosis> {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "src/doctor.ts", ...args], {
    cwd: ROOT,
    env: { ...PROCESS_ENV, DATA_DIR: folder.path, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => void (output += String(data)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, wrong: output.split("\n").filter((line) => line.startsWith("✗")) };
}

/** Everything there is, in order. */
async function openWorld(allow: DiscordOptions["allow"] = {}): Promise<Record<string, string>> {
  const [gateway, slack, discord] = await Promise.all([start(), startSlack(), startDiscord({ allow })]);
  const guild = discord.addGuild();
  discord.addChannel(guild, "general");
  return {
    GATEWAY_BASE_URL: gateway.url,
    GATEWAY_API_KEY: "sk-sandbox-all",
    CHAT_MODEL: "sandbox-chat",
    IMAGE_MODEL: "sandbox-image",
    SLACK_API_URL: slack.apiUrl,
    SLACK_BOT_TOKEN: slack.botToken,
    SLACK_APP_TOKEN: slack.appToken,
    DISCORD_API_URL: discord.apiUrl,
    DISCORD_TOKEN: discord.token,
  };
}

describe("npm run doctor", () => {
  test("is content with nothing configured", async () => {
    const { code, output, wrong } = await runDoctor({});
    expect(wrong).toEqual([]);
    expect(output).toContain("Everything that was tried works.");
    expect(code).toBe(0);
  });

  test("tries everything that is configured, and shows no secret", async () => {
    const env = await openWorld();
    const { code, output, wrong } = await runDoctor(env);
    expect(wrong).toEqual([]);
    expect(code).toBe(0);
    for (const part of ["Configuration", "Gateway", "Storage", "Address", "Slack", "Discord"]) {
      expect(output).toContain(`✓ ${part}: `);
    }
    expect(output).toMatch(/lets the bot in at https:\/\/discord\.com\/oauth2\/authorize\?client_id=\d+/);
    for (const name of ["GATEWAY_API_KEY", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_TOKEN"]) {
      expect(output).not.toContain(env[name]);
    }
  });

  test.each([
    ["a key that is refused", { GATEWAY_API_KEY: "canary-key" }, /^✗ Gateway: .*refused the key.*GATEWAY_API_KEY/],
    ["a gateway that is away", { GATEWAY_BASE_URL: "http://127.0.0.1:1" }, /^✗ Gateway: .*GATEWAY_BASE_URL/],
    ["a model that is not there", { IMAGE_MODEL: "painter" }, /^✗ Gateway: IMAGE_MODEL painter/],
    ["a folder that cannot be made", { DATA_DIR: "/proc/palaver" }, /^✗ Storage: .*DATA_DIR/],
    ["a token Slack refuses", { SLACK_APP_TOKEN: "xapp-canary" }, /^✗ Slack: SLACK_APP_TOKEN/],
    ["a token Discord refuses", { DISCORD_TOKEN: `${WRONG_BOT}.canary.canary` }, /^✗ Discord: .*token/],
    ["a Redis that is away", { REDIS_URL: "redis://:canary@127.0.0.1:1" }, /^✗ Redis: .*did not answer/],
  ])("finds %s and ends with 1", async (_, change, words) => {
    const world = await openWorld({ "invalid-request": "DISCORD_TOKEN" in change ? 1 : 0 });
    const { code, output, wrong } = await runDoctor({ ...world, ...change }, ["--no-chat"]);
    expect(wrong).toEqual([expect.stringMatching(words)]);
    expect(output).toContain("One thing is wrong.");
    expect(output).not.toContain("canary");
    expect(code).toBe(1);
  });

  test("finds a port that is taken", async () => {
    const taken = await listenUntilTestEnds(createServer((_, response) => response.end("somebody else")));
    const { wrong } = await runDoctor({ PORT: new URL(taken).port });
    expect(wrong).toEqual([expect.stringMatching(/^✗ Address: .*taken.*PORT/)]);
  });

  test.skipIf(isRedisMissing)("looks at a real Redis", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const { code, output, wrong } = await runDoctor({ REDIS_URL: redis.url });
    expect(output).toContain("✓ Redis: Redis answers");
    expect(wrong).toEqual([expect.stringContaining("keeps nothing on a disk")]);
    expect(code).toBe(1);
  });

  test("lists every problem of the configuration and goes no further", async () => {
    const { code, wrong } = await runDoctor({ PORT: "x", SHARDS: "0", DISCORD_TOKE: "canary" });
    expect(wrong).toHaveLength(3);
    expect(code).toBe(1);
  });

  test("says how it is used", async () => {
    expect(await runDoctor({}, ["--help"])).toMatchObject({ code: 0, output: expect.stringContaining("--no-chat") });
    expect(await runDoctor({}, ["--fix"])).toMatchObject({ code: 1, output: expect.stringContaining("Usage") });
  });
});
