import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Bench {
  /** Each bench is a separate program, so that benches do not affect each other's memory. */
  url: string;
  measures: string;
  /** The bench's time limit, if it is not the default. */
  limitMs?: number;
}

const BENCHES = new Map<string, Bench>([
  [
    "sse",
    {
      url: import.meta.resolve("./sse.ts"),
      measures:
        "the gateway client's CPU per chunk and memory per stream, compared with a bare socket and other clients",
    },
  ],
  [
    "history",
    {
      url: import.meta.resolve("./history.ts"),
      measures: "bytes and time per appended message in short and long conversations, on SQLite and Redis",
    },
  ],
  [
    "pacing",
    {
      url: import.meta.resolve("./pacing.ts"),
      measures: "how far a growing reply lags behind the model, compared with plain timers, in virtual time",
      limitMs: 300_000,
    },
  ],
  [
    "discord",
    {
      url: import.meta.resolve("./discord.ts"),
      measures: "how far replies on a simulated Discord lag behind the model in real time, compared with virtual time",
    },
  ],
  [
    "slack",
    {
      url: import.meta.resolve("./slack.ts"),
      measures: "how far replies on a simulated Slack lag behind the model in real time, as streams and as edits",
      limitMs: 180_000,
    },
  ],
  [
    "service",
    {
      url: import.meta.resolve("./service.ts"),
      measures: "CPU of the whole service per token on Discord and Slack, compared with a minimal bot",
    },
  ],
  [
    "scale",
    {
      url: import.meta.resolve("./scale.ts"),
      measures:
        'the load that 1, 2 and 4 processes can handle: questions, turns, streams or interrupts; or how far replies lag behind: native, fallback or discord, and a scenario like "5 at once"',
      limitMs: 240_000,
    },
  ],
  [
    "queue",
    {
      url: import.meta.resolve("./queue.ts"),
      measures:
        "the Redis cost of one turn during 0 to 1,000 other conversations; or newcomer: how soon a new person gets an answer during 40 slow questions",
      limitMs: 180_000,
    },
  ],
  [
    "deploy",
    {
      url: import.meta.resolve("./deploy.ts"),
      measures: "pauses that people see while five processes are replaced; slack or discord, and SIGTERM or SIGKILL",
      limitMs: 290_000,
    },
  ],
  [
    "takeover",
    {
      url: import.meta.resolve("./takeover.ts"),
      measures:
        "how soon another process continues the answer of one that is killed or frozen, 20 times; slack or discord, and SIGKILL or SIGSTOP",
      limitMs: 480_000,
    },
  ],
  [
    "usage",
    {
      url: import.meta.resolve("./usage.ts"),
      measures:
        "counted usage compared with the gateway's while processes are killed; --turns, --seed, --processes, --kill, --tokens",
      limitMs: 1_800_000,
    },
  ],
  [
    "drill",
    {
      url: import.meta.resolve("./drill.ts"),
      measures: "the effect of 20 hostile people on 180 others: waits, leaks and cost; --seconds, --seed",
      limitMs: 290_000,
    },
  ],
  [
    "catchup",
    {
      url: import.meta.resolve("./catchup.ts"),
      measures: "what /catchup reads of a long thread and of a busy day: seconds, calls and tokens",
      limitMs: 300_000,
    },
  ],
  [
    "files",
    {
      url: import.meta.resolve("./files.ts"),
      measures: "time, event loop and memory for attached documents, good and hostile, and for 20 at once",
      limitMs: 300_000,
    },
  ],
  [
    "tools",
    {
      url: import.meta.resolve("./tools.ts"),
      measures: "the cost of 20 servers with 300 tools: start, event loop, memory, and the list in a request",
    },
  ],
  [
    "start",
    {
      url: import.meta.resolve("./start.ts"),
      measures: "time from npm start to the first response of the service",
    },
  ],
]);

/** Longer than most benches' own limits. */
const LIMIT_MS = 120_000;

function main(name: string | undefined, rest: readonly string[]): number {
  if (name === undefined) {
    const lines = [...BENCHES].map(([name, { measures }]) => `  ${name.padEnd(8)} ${measures}`);
    process.stdout.write(`${["npm run bench -- NAME, where NAME is one of", ...lines].join("\n")}\n`);
    return 0;
  }
  const bench = BENCHES.get(name);
  if (bench === undefined) {
    process.stderr.write(`There is no bench "${name}". Choose one of: ${[...BENCHES.keys()].join(", ")}.\n`);
    return 1;
  }
  const { url, limitMs: timeout = LIMIT_MS } = bench;
  const args = ["--disable-warning=ExperimentalWarning", fileURLToPath(url), ...rest];
  const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit", timeout });
  if (error !== undefined) process.stderr.write(`The bench "${name}" was stopped: ${error.message}\n`);
  return status ?? 1;
}

process.exitCode = main(process.argv[2], process.argv.slice(3));
