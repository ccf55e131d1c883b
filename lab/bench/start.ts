import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { variableNames } from "../../src/config/config.ts";
import { PLATFORMS } from "../../src/platforms.ts";
import { loadModules } from "../../src/port/module.ts";
import { makeDataDir } from "../support/service.ts";
import { countRounds, describeMachine, runBench } from "./support/lifecycle.ts";
import { type Program, type StartTimes, timeRun, timeStart } from "./support/program.ts";
import { describeSummary, summarize, toRatios } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const MAX_ROUNDS = 9;
const VARIABLES = variableNames(await loadModules(PLATFORMS));
const ROOT = join(import.meta.dirname, "../..");
const HEAD = ["started", "ready line, ms", "200 at /readyz, ms", "× bare server"];

/** The smallest server on this runtime. It prints a ready line like the service. */
const BARE_SERVER = `
  const server = require("node:http").createServer((request, response) => response.end());
  server.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port, msg: "the server is ready" }));
  });`;

const BARE = "a bare node:http server";
const NODE = "node -e 0, to its end";
const SERVERS = new Map<string, [command: string, ...args: string[]]>([
  [BARE, [process.execPath, "-e", BARE_SERVER]],
  ["node src/main.ts", [process.execPath, "--disable-warning=ExperimentalWarning", "src/main.ts"]],
  ["npm start", ["npm", "start"]],
]);

await runBench(async (resources) => {
  const times = new Map<string, StartTimes[]>([...SERVERS.keys()].map((name) => [name, []]));
  const emptyMs: number[] = [];
  const path = await makeFolder(resources);
  // The first start does not count, because it reads the sources from disk.
  await timeStart(toProgram("npm", ["start"], await makeFolder(resources)));
  for (const _ of countRounds(MAX_ROUNDS)) {
    emptyMs.push(await timeRun(toProgram(process.execPath, ["-e", "0"], path)));
    for (const [name, [command, ...args]] of SERVERS) {
      times.get(name)?.push(await timeStart(toProgram(command, args, await makeFolder(resources))));
    }
  }
  return `${describeRun(emptyMs.length)}\n\n${formatTable(HEAD, toRows(emptyMs, times))}`;
});

async function makeFolder(resources: AsyncDisposableStack): Promise<string> {
  const { path, remove } = await makeDataDir();
  resources.defer(remove);
  return path;
}

/** A start without any configuration. The empty variables override this folder's .env file. */
function toProgram(command: string, args: readonly string[], dataDir: string): Program {
  const nothing = Object.fromEntries(VARIABLES.map((name) => [name, ""]));
  const { HOME = tmpdir(), PATH = "" } = process.env;
  // Remove these folders: `npm run` puts the packages' programs first on the PATH, but `npm start` in a shell has no
  // such entries.
  const folders = PATH.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const env = { ...nothing, HOME, PATH: folders.join(delimiter), DATA_DIR: dataDir, PORT: "0" };
  return { command, args, env, cwd: ROOT };
}

function toRows(emptyMs: readonly number[], times: ReadonlyMap<string, readonly StartTimes[]>): string[][] {
  const answersOf = (name: string) => (times.get(name) ?? []).map(({ answerMs }) => answerMs);
  const bareMs = answersOf(BARE);
  const cells = (values: readonly number[], digits: number) => describeSummary(summarize(values), digits);
  const servers = [...times].map(([name, found]) => {
    const lines = found.map(({ lineMs }) => lineMs);
    return [name, cells(lines, 0), cells(answersOf(name), 0), cells(toRatios(answersOf(name), bareMs), 1)];
  });
  return [[NODE, cells(emptyMs, 0), "", cells(toRatios(emptyMs, bareMs), 1)], ...servers];
}

function describeRun(rounds: number): string {
  return [
    `start: ${describeMachine()}; ${rounds} rounds; median (min–max); × is the median of each round's own ratio of the last times.`,
    "Milliseconds from the start of the process. The packages are installed; there is no configuration, and the data folder is empty:",
    "the service uses the embedded sandbox gateway and the local page.",
  ].join("\n");
}
