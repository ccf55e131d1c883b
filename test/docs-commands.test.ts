import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { isRedisMissing, startRedis } from "../lab/support/redis.ts";
import { openDatabase } from "../src/store/database.ts";
import { start } from "./sandbox/sandbox.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const PATH = `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`;

/** The blocks of commands in a document that contain these words. Each block is a Bash program. */
function commandsWith(document: string, words: string): string[] {
  const blocks = readFileSync(root + document, "utf8").matchAll(/^```sh\n([^]*?)^```$/gm);
  return Array.from(blocks, ([, block = ""]) => block).filter((block) => block.includes(words));
}

test("the commands of docs/operations.md save the database while it is open, and restore it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "palaver-commands-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "data"));
  const path = join(folder, "data/palaver.sqlite");
  const database = openDatabase(path);
  database.exec("CREATE TABLE said (text TEXT); INSERT INTO said VALUES ('before')");
  const [save = ""] = commandsWith("docs/operations.md", "npm run backup -- backup.sqlite");
  const [restore = ""] = commandsWith("docs/operations.md", "600 backup.sqlite data/palaver.sqlite");
  // npm runs the script in the checkout, which does not have this folder.
  const own = `npm() { node --disable-warning=ExperimentalWarning "${root}src/backup.ts" "$4"; }\n`;
  await run("bash", ["-ec", own + save], { cwd: folder, env: { PATH } });
  await expect(run("bash", ["-ec", own + save], { cwd: folder, env: { PATH } })).rejects.toThrow("already exists");
  database.exec("INSERT INTO said VALUES ('after')");
  database.close();

  await run("bash", ["-ec", restore], { cwd: folder, env: { PATH } });
  const restored = new DatabaseSync(path);
  onTestFinished(() => restored.close());
  expect(restored.prepare("SELECT text FROM said").all()).toEqual([{ text: "before" }]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test.skipIf(isRedisMissing)("the commands of docs/operations.md save Redis's data, and restore it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "palaver-commands-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { url: REDIS_URL, stop } = await startRedis({ isKept: true });
  onTestFinished(stop);
  const bash = (program: string) => run("bash", ["-ec", program], { cwd: folder, env: { PATH, REDIS_URL } });
  const [save = ""] = commandsWith("docs/operations.md", "--rdb");
  // Otherwise Redis would wait five seconds for other replicas.
  const prepare = ["set said before", "config set repl-diskless-sync-delay 0"];
  await bash(prepare.map((command) => `redis-cli -u "$REDIS_URL" ${command}\n`).join("") + save);
  await stop();

  const [restore = ""] = commandsWith("docs/operations.md", "--appendonly no");
  const port = new URL(REDIS_URL).port;
  const own = `redis-cli() { command redis-cli -p ${port} "$@"; }\nredis-server() { command redis-server --port ${port} "$@"; }`;
  mkdirSync(join(folder, "redis"));
  await bash(
    `${own}\n${restore.replaceAll("/path/of/redis", join(folder, "redis")).replaceAll("sleep 1", "sleep 0.1")}wait`,
  );
  const { stdout } = await bash(
    `${own}\nredis-server --dir redis --appendonly yes > log &\nuntil redis-cli ping; do sleep 0.1; done\nredis-cli get said\nredis-cli shutdown nosave\nwait`,
  );
  expect(stdout).toMatch(/^before$/m);
});

test("the commands of docs/sandbox.md get a growing answer and an image", async () => {
  const { url } = await start();
  const [commands = ""] = commandsWith("docs/sandbox.md", "curl");
  const { stdout } = await run("bash", ["-ec", commands.replaceAll("http://127.0.0.1:8787", url)], {
    env: { PATH },
    maxBuffer: 2 ** 26,
  });
  expect(stdout).toContain('"object":"chat.completion.chunk"');
  expect(stdout).toContain("data: [DONE]");
  expect(stdout).toContain('"mimeType":"image/png"');
});
