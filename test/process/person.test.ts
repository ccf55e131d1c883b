import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, PROCESS_ENV, ROOT } from "../../lab/support/service.ts";
import { startGeneral } from "../support/slack.ts";
import { answersIn, open } from "./slack-service.ts";

async function startScene(more: Record<string, string> = {}) {
  const { slack, ada, general } = await startGeneral();
  const { service, dataDir } = await open(slack, "Socket Mode", undefined, more);
  const question = ada.mention(general, "Say: canary");
  await answersIn(slack, general, question);
  const folder = await makeDataDir();
  onTestFinished(folder.remove);

  async function run(...args: string[]) {
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", join(ROOT, "src/person.ts"), ...args],
      {
        cwd: folder.path,
        env: {
          ...PROCESS_ENV,
          DATA_DIR: dataDir,
          SLACK_BOT_TOKEN: slack.botToken,
          SLACK_APP_TOKEN: slack.appToken,
          SLACK_API_URL: slack.apiUrl,
          ...more,
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => void (output += String(data)));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, output };
  }
  const id = `slack:${slack.workspace.id}/${ada.id}`;
  return { service, run, id, short: `slack:${ada.id}`, folder: folder.path };
}

describe("npm run export and npm run erase", () => {
  test("export and erase check their arguments, and work on SQLite while the service is stopped", async () => {
    const { service, run, id, short, folder } = await startScene();
    expect(await run("erase", "ada")).toEqual({ code: 1, output: expect.stringMatching(/^Usage: npm run export/) });
    expect(await run("erase", short, "for", "good")).toEqual({ code: 1, output: expect.stringContaining("/forget @") });
    await service.end("SIGTERM");
    const none = "Nothing is stored about slack:nobody. Is the id right?";
    expect(await run("export", "slack:nobody")).toEqual({ code: 1, output: expect.stringContaining(none) });
    const { output } = await run("export", short);
    const [, path = ""] = /is in (\S+\.json)/.exec(output) ?? [];
    expect(readFileSync(join(folder, path), "utf8")).toContain("Say: canary");
    expect(statSync(join(folder, path)).mode & 0o777).toBe(0o600);
    expect((await run("erase", short)).output).toMatch(/conversations: 1,[^]*Nothing is erased yet/);
    expect((await run("erase", short, "for", "good")).output).toContain(`Erased everything about ${id}: 2 messages`);
    expect((await run("erase", id)).output).toContain(`Nothing is stored about ${id}. Is the id right?`);
  });

  test.skipIf(isRedisMissing)("erase works on Redis while the service runs", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const { run, id, short } = await startScene({ REDIS_URL: redis.url });
    expect((await run("erase", short, "for", "good")).output).toContain(`Erased everything about ${id}: 2 messages`);
    expect((await run("erase", id)).output).toContain(`Nothing is stored about ${id}. Is the id right?`);
  });
});
