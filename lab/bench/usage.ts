import { parseArgs } from "node:util";
import { type CountedOptions, type CountedResult, runCounted } from "./support/counted-run.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";

const LIMIT_MS = 1_750_000;
const TOKENS_PER_SECOND = 2_000;
const USAGE = "npm run bench -- usage --turns 1000 --seed 1 [--processes 4] [--kill 2000] [--tokens 100000]";

await runBench(async () => {
  const options = readOptions(process.argv.slice(2));
  const startMs = performance.now();
  const result = await runCounted(options);
  return describe(options, result, (performance.now() - startMs) / 1_000);
}, LIMIT_MS);

/** Throws a readable error for wrong arguments. */
function readOptions(args: string[]): CountedOptions {
  const { values } = parseArgs({
    args,
    options: {
      turns: { type: "string", default: "1000" },
      seed: { type: "string", default: "1" },
      processes: { type: "string", default: "1" },
      kill: { type: "string", default: "2000" },
      tokens: { type: "string" },
    },
  });
  const read = (name: keyof typeof values): number => {
    const text = values[name] ?? "";
    if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not "${text}". ${USAGE}`);
    return Number(text);
  };
  const limit = values.tokens === undefined ? {} : { quotas: { all: { month: { tokens: read("tokens") } } } };
  return {
    turns: read("turns"),
    seed: read("seed"),
    processes: Math.max(1, read("processes")),
    killMs: read("kill"),
    tokensPerSecond: TOKENS_PER_SECOND,
    policy: limit,
    limitMs: LIMIT_MS - 60_000,
  };
}

function describe(options: CountedOptions, result: CountedResult, seconds: number): string {
  const { turns, seed, processes, policy } = options;
  const { served, counted, kills, isDone } = result;
  const given = served.promptTokens + served.completionTokens;
  const used = counted.promptTokens + counted.completionTokens;
  const most = policy.quotas?.all?.month?.tokens;
  const overspent = most === undefined ? 0 : Math.max(0, given - most);
  if (!isDone || overspent > 0) process.exitCode = 1;
  return [
    `usage of ${turns} turns in ${processes} processes from seed ${seed}, ${kills} kills${isDone ? "" : ", NOT DONE"}; ${seconds.toFixed(0)} s, ${describeMachine()}.`,
    `the gateway served ${served.requests} requests, ${served.promptTokens} + ${served.completionTokens} tokens; ${served.left} callers disconnected.`,
    `the bot counted ${counted.answers} answers, ${counted.requests} requests, ${counted.promptTokens} + ${counted.completionTokens} tokens; ${counted.estimatedTokens} of them are estimates.`,
    `difference: ${counted.requests - served.requests} requests, ${used - given} tokens (${((100 * (used - given)) / Math.max(1, given)).toFixed(3)} %).`,
    ...(most === undefined ? [] : [`limit of ${most} tokens: overspent ${overspent}.`]),
  ].join("\n");
}
