import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir, PROCESS_ENV } from "../../lab/support/service.ts";
import { start } from "../sandbox/sandbox.ts";
import { type DiscordOptions, startDiscord } from "../support/discord.ts";
import { listenUntilTestEnds } from "../support/listen.ts";
import { startSlack } from "../support/slack.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The first part of a token whose bot does not exist. */
const WRONG_BOT = Buffer.from("123456789012345678").toString("base64url");

interface Diagnosis {
  code: number | null;
  output: string;
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

/** All parts that the doctor checks, in working order. */
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
  test("the doctor finds no problem when nothing is configured", async () => {
    const { code, output, wrong } = await runDoctor({});
    expect(wrong).toEqual([]);
    expect(output).toContain("Everything works.");
    expect(code).toBe(0);
  });

  test("the doctor checks everything that is configured, and prints no secret", async () => {
    const env = await openWorld();
    const { code, output, wrong } = await runDoctor(env);
    expect(wrong).toEqual([]);
    expect(code).toBe(0);
    for (const part of ["Configuration", "Gateway", "Storage", "Address", "Slack", "Discord"]) {
      expect(output).toContain(`✓ ${part}: `);
    }
    expect(output).toMatch(/Add to a server: https:\/\/discord\.com\/oauth2\/authorize\?client_id=\d+/);
    for (const name of ["GATEWAY_API_KEY", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_TOKEN"]) {
      expect(output).not.toContain(env[name]);
    }
  });

  test("the doctor finds every part that does not work, without its secret, and exits with 1", async () => {
    const world = await openWorld({ "invalid-request": 1 });
    const taken = await listenUntilTestEnds(createServer((_, response) => response.end("somebody else")));
    const changes = {
      GATEWAY_API_KEY: "canary-key",
      DATA_DIR: "/proc/palaver",
      PORT: new URL(taken).port,
      SLACK_APP_TOKEN: "xapp-canary",
      DISCORD_TOKEN: `${WRONG_BOT}.canary.canary`,
      REDIS_URL: "redis://:canary@127.0.0.1:1",
    };
    const { code, output, wrong } = await runDoctor({ ...world, ...changes }, ["--no-chat"]);
    expect(wrong.toSorted()).toEqual([
      expect.stringMatching(/^✗ Address: .*in use.*PORT/),
      expect.stringMatching(/^✗ Discord: .*token/),
      expect.stringMatching(/^✗ Gateway: .*refused the key.*GATEWAY_API_KEY/),
      expect.stringMatching(/^✗ Redis: .*did not answer/),
      expect.stringMatching(/^✗ Slack: SLACK_APP_TOKEN/),
      expect.stringMatching(/^✗ Storage: .*DATA_DIR/),
    ]);
    expect(output).toContain("6 things are wrong.");
    expect(output).not.toContain("canary");
    expect(code).toBe(1);
  });

  test("the doctor lists every problem of the configuration and stops there", async () => {
    const { code, wrong } = await runDoctor({ PORT: "x", SHARDS: "0", DISCORD_TOKE: "canary" });
    expect(wrong).toHaveLength(3);
    expect(code).toBe(1);
  });

  test("the doctor prints its usage", async () => {
    expect(await runDoctor({}, ["--help"])).toMatchObject({ code: 0, output: expect.stringContaining("--no-chat") });
    expect(await runDoctor({}, ["--fix"])).toMatchObject({ code: 1, output: expect.stringContaining("Usage") });
  });
});
