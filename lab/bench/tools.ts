import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { variableNames } from "../../src/config/config.ts";
import { readMcpFile } from "../../src/config/mcp-servers.ts";
import { createMcpServers } from "../../src/mcp/servers.ts";
import { PLATFORMS } from "../../src/platforms.ts";
import { loadModules } from "../../src/port/module.ts";
import { chooseTools } from "../../src/tools/choice.ts";
import { toDefinition } from "../../src/tools/tool.ts";
import { makeDataDir } from "../support/service.ts";
import { countRounds, describeMachine, runBench } from "./support/lifecycle.ts";
import { type Program, timeStart } from "./support/program.ts";
import { describeSummary, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const SERVERS = 20;
const TOOLS_EACH = 15;
const MAX_ROUNDS = 7;
const MIB = 1024 * 1024;
const VARIABLES = variableNames(await loadModules(PLATFORMS));
const ROOT = join(import.meta.dirname, "../..");
const PROGRAM = fileURLToPath(import.meta.resolve("./support/tool-server.ts"));
const WITHOUT = "200 at /readyz without tool servers, ms";
const WITH = `200 at /readyz with ${SERVERS} programs, ms`;
const BEYOND = "the second beyond the first, ms";
const THERE = `until all ${SERVERS * TOOLS_EACH} tools are available, ms`;
const LONGEST = "longest hold of the event loop meanwhile, ms";
const MEMORY = "memory that they take in the service, MiB";
const OFFERED = "tools in a request";
const CHARS = "their descriptions and schemas, characters";
const CHOICE = "time to choose them, ms";

await runBench(async (resources) => {
  const { path: folder, remove } = await makeDataDir();
  resources.defer(remove);
  const path = join(folder, "mcp.json");
  const args = ["--disable-warning=ExperimentalWarning", PROGRAM, String(TOOLS_EACH)];
  const entry = { command: process.execPath, args };
  const names = Array.from({ length: SERVERS }, (_, index) => `server${index}`);
  const json = JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, entry])) });
  await writeFile(path, json);
  const figures = new Map<string, number[]>();
  const note = (found: Record<string, number>) => {
    for (const [name, value] of Object.entries(found)) figures.set(name, [...(figures.get(name) ?? []), value]);
  };
  let rounds = 0;
  for (const round of countRounds(MAX_ROUNDS)) {
    const { answerMs: without } = await timeStart(toProgram(join(folder, `without${round}`), {}));
    const { answerMs: beside } = await timeStart(toProgram(join(folder, `with${round}`), { MCP_CONFIG: path }));
    note({ [WITHOUT]: without, [WITH]: beside, [BEYOND]: beside - without, ...(await connect(json)) });
    rounds += 1;
  }
  const rows = [...figures].map(([name, values]) => [name, describeSummary(summarize(values), 0)]);
  return `tools: ${describeMachine()}; ${rounds} rounds; median (min–max).\n\n${formatTable(["", "measured"], rows)}`;
});

function toProgram(dataDir: string, more: Record<string, string>): Program {
  const nothing = Object.fromEntries(VARIABLES.map((name) => [name, ""]));
  const { HOME = tmpdir(), PATH = "" } = process.env;
  const env = { ...nothing, HOME, PATH, DATA_DIR: dataDir, PORT: "0", ...more };
  return { command: process.execPath, args: ["--disable-warning=ExperimentalWarning", "src/main.ts"], env, cwd: ROOT };
}

/** Connects to all servers from this process, then chooses the tools for one request. */
async function connect(json: string): Promise<Record<string, number>> {
  const { servers: configs } = readMcpFile("mcp.json", {}, () => json);
  const before = process.memoryUsage().rss;
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const startMs = performance.now();
  const servers = createMcpServers(configs, pino({ level: "silent" }));
  try {
    await servers.tried();
    const thereMs = performance.now() - startMs;
    loop.disable();
    const tools = servers.toolsOf({ platform: "bench", channelId: "" });
    if (tools.length !== SERVERS * TOOLS_EACH) throw new Error(`There are ${tools.length} tools.`);
    const chosenMs = performance.now();
    const chosen = chooseTools([], tools, { question: "issue 7 of the project", called: new Set() });
    return {
      [THERE]: thereMs,
      [LONGEST]: loop.max / 1e6,
      [MEMORY]: (process.memoryUsage().rss - before) / MIB,
      [OFFERED]: chosen.length,
      [CHARS]: JSON.stringify(chosen.map(toDefinition)).length,
      [CHOICE]: performance.now() - chosenMs,
    };
  } finally {
    await servers.close();
  }
}
