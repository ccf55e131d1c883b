import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { openMcpServers } from "../../src/app/followed-files.ts";
import { readMcpFile } from "../../src/config/mcp-servers.ts";
import { eventually } from "../support/eventually.ts";

const PLACE = { platform: "local", channelId: "c" };

test("the service follows changes of the file of tool servers, and ignores a version with problems", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = await mkdtemp(join(tmpdir(), "palaver-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "mcp.json");
  const { log, lines } = recordingLog();
  const read = () => readMcpFile(path, {}, (file) => readFileSync(file, "utf8"));
  const mcp = openMcpServers({ path, servers: [], refused: [], tokenForms: [], read, log });
  onTestFinished(() => mcp.close());
  const look = () => vi.advanceTimersByTime(2_000);
  const names = () => (look(), mcp.report(PLACE).map(({ name }) => name));
  const told = () => (
    look(), lines.filter(({ msg }) => String(msg).startsWith("MCP_CONFIG")).map(({ level }) => level)
  );

  // Written in one step, because half of it would be a file with problems.
  function write(json: string): void {
    writeFileSync(`${path}.new`, json);
    renameSync(`${path}.new`, path);
  }

  const server = { command: process.execPath, args: ["-e", ""] };
  write(JSON.stringify({ mcpServers: { first: server } }));
  await eventually(names).toEqual(["first"]);
  write(JSON.stringify({ mcpServers: { second: { ...server, timeoutSeconds: "soon" } } }));
  await eventually(told).toContain(50);
  expect(names()).toEqual(["first"]);
  write(JSON.stringify({ mcpServers: { second: server } }));
  await eventually(names).toEqual(["second"]);
  // The file was missing at the start, which caused no log line.
  expect(told()).toEqual([30, 50, 30]);
});
