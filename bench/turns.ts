import { parseArgs } from "node:util";
import { type FaultLoopOptions, type LoopPlatform, type LoopResult, runFaultLoop } from "../test/support/fault-loop.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";

const LIMIT_MS = 580_000;
const SIDE_BY_SIDE = 16;
const USAGE = "npm run bench -- turns --platform discord|slack --turns 500 --seed 1";

await runBench(async () => {
  const options = readOptions(process.argv.slice(2));
  const startMs = performance.now();
  const result = await runFaultLoop(options);
  if (Object.values(result.counts).some((count) => count > 0)) process.exitCode = 1;
  return describe(options, result, (performance.now() - startMs) / 1_000);
}, LIMIT_MS);

/** Throws in plain words. */
function readOptions(args: string[]): FaultLoopOptions {
  const { values } = parseArgs({
    args,
    options: {
      platform: { type: "string", default: "discord" },
      turns: { type: "string", default: "500" },
      seed: { type: "string", default: "1" },
    },
  });
  const { platform } = values;
  if (!isPlatform(platform)) throw new Error(`There is no platform "${platform}" in this bench. ${USAGE}`);
  return {
    platform,
    turns: readCount("turns", values.turns),
    seed: readCount("seed", values.seed),
    sideBySide: SIDE_BY_SIDE,
  };
}

function isPlatform(name: string): name is LoopPlatform {
  return name === "discord" || name === "slack";
}

function readCount(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not "${text}". ${USAGE}`);
  return Number(text);
}

function describe({ platform, seed }: FaultLoopOptions, result: LoopResult, seconds: number): string {
  const { rounds, turns, asked, kills, acts, counts, failed } = result;
  const { lost, doubled, stuck, wrong } = counts;
  return [
    `turns on ${platform}: ${turns} with faults, ${asked} in all, in ${rounds} rounds from seed ${seed}, ${kills} kills, ${acts} calls of tools that act; ${seconds.toFixed(0)} s, ${describeMachine()}.`,
    `lost ${lost}, doubled ${doubled}, stuck ${stuck}, otherwise wrong ${wrong}, text taken back ${counts["taken back"]}, acted twice ${counts["acted twice"]}.`,
    ...failed.flatMap((finding) => [
      `npm run bench -- turns --platform ${platform} --turns 1 --seed ${finding.seed}`,
      ...finding.complaints.map(({ fault, sentence }) => `  ${fault}: ${sentence}`),
    ]),
  ].join("\n");
}
