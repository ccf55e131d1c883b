import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Bench {
  /** A program of its own, so that none measures what another one left in memory. */
  url: string;
  measures: string;
  /** Above what it allows itself, where that is more than usual. */
  limitMs?: number;
}

const BENCHES = new Map<string, Bench>([
  [
    "sse",
    {
      url: import.meta.resolve("./sse.ts"),
      measures: "the gateway client's CPU per chunk and memory per stream, beside a bare socket and other clients",
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
      measures: "how far a growing reply is behind the model, beside plain timers, in virtual time",
      limitMs: 300_000,
    },
  ],
  [
    "discord",
    {
      url: import.meta.resolve("./discord.ts"),
      measures: "how far replies on a simulated Discord are behind the model in real time, beside virtual time",
    },
  ],
  [
    "slack",
    {
      url: import.meta.resolve("./slack.ts"),
      measures: "how far replies on a simulated Slack are behind the model in real time, as streams and as edits",
      limitMs: 180_000,
    },
  ],
  [
    "service",
    {
      url: import.meta.resolve("./service.ts"),
      measures: "CPU of the whole service per token through Discord's and Slack's path, beside a minimal bot",
    },
  ],
  [
    "scale",
    {
      url: import.meta.resolve("./scale.ts"),
      measures:
        'what 1, 2 and 4 processes can take: turns, streams or history; or how far replies are behind: native, fallback or discord, and "5 at once" or another',
      limitMs: 240_000,
    },
  ],
  [
    "queue",
    {
      url: import.meta.resolve("./queue.ts"),
      measures:
        "what Redis does for one turn while 0 to 1,000 other conversations are being answered; or newcomer: how soon somebody new is heard beside 40 slow questions",
      limitMs: 180_000,
    },
  ],
  [
    "deploy",
    {
      url: import.meta.resolve("./deploy.ts"),
      measures: "what people notice while five processes are replaced; slack or discord, and SIGTERM or SIGKILL",
      limitMs: 290_000,
    },
  ],
  [
    "turns",
    {
      url: import.meta.resolve("./turns.ts"),
      measures: "what is lost, doubled or stuck when everything fails; --platform discord or slack, --turns, --seed",
      limitMs: 600_000,
    },
  ],
  [
    "usage",
    {
      url: import.meta.resolve("./usage.ts"),
      measures:
        "what is counted and what the gateway gave while processes are killed; --turns, --seed, --processes, --kill, --tokens",
      limitMs: 1_800_000,
    },
  ],
  [
    "drill",
    {
      url: import.meta.resolve("./drill.ts"),
      measures: "what 180 people notice of 20 hostile ones, what leaks, and what it costs; --seconds, --seed",
      limitMs: 290_000,
    },
  ],
  [
    "files",
    {
      url: import.meta.resolve("./files.ts"),
      measures: "time, event loop and memory for documents people attach, good and hostile, and for 20 at once",
      limitMs: 300_000,
    },
  ],
  [
    "tools",
    {
      url: import.meta.resolve("./tools.ts"),
      measures: "what 20 servers with 300 tools cost: the start, the event loop, memory, and the list in a request",
    },
  ],
  [
    "start",
    {
      url: import.meta.resolve("./start.ts"),
      measures: "time from npm start to a service that answers",
    },
  ],
]);

/** Above what most benches allow themselves. */
const LIMIT_MS = 120_000;

function main(name: string | undefined, rest: readonly string[]): number {
  if (name === undefined) {
    const lines = [...BENCHES].map(([name, { measures }]) => `  ${name.padEnd(8)} ${measures}`);
    process.stdout.write(`${["npm run bench -- NAME, where NAME is one of", ...lines].join("\n")}\n`);
    return 0;
  }
  const bench = BENCHES.get(name);
  if (bench === undefined) {
    process.stderr.write(`There is no bench "${name}"; there are ${[...BENCHES.keys()].join(", ")}.\n`);
    return 1;
  }
  const args = ["--disable-warning=ExperimentalWarning", fileURLToPath(bench.url), ...rest];
  const { limitMs: timeout = LIMIT_MS } = bench;
  const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit", timeout });
  if (error !== undefined) process.stderr.write(`The bench "${name}" was stopped: ${error.message}\n`);
  return status ?? 1;
}

process.exitCode = main(process.argv[2], process.argv.slice(3));
