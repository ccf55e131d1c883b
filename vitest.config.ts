import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take most of a minute, mostly in pauses. */
const LONGEST =
  /[\\/]test[\\/](process[\\/](alone|canaries|chaos|roles-\w+|two-processes)|queue[\\/]processes)\.test\.ts$/;
/**
 * Files that wait for their own processes and browsers, or for a bot's pauses. They take long but leave the cores to
 * others.
 */
const WAITING = /[\\/]test[\\/]((process|browser|surfaces)[\\/]|adapters[\\/]slack[\\/]write[\\/]outbound)/;
/** The slow files start within this part of the run, so that none of them is still waiting when the others are done. */
const STARTED_BY = 0.6;

/**
 * Mixes slow waiting files with files that compute, the longest first. So there is always something to compute, and
 * processes and browsers do not all start at once.
 */
class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const groups = Map.groupBy(sorted, ({ moduleId }) => [LONGEST, WAITING].find((files) => files.test(moduleId)));
    const waiting = [LONGEST, WAITING].flatMap((group) => groups.get(group) ?? []);
    return spread(waiting, STARTED_BY, groups.get(undefined) ?? []);
  }
}

/** Keeps both orders, and spreads `files` evenly over the first `part` of `others`. */
function spread(files: TestSpecification[], part: number, others: TestSpecification[]): TestSpecification[] {
  const first = files.map((file, index) => ({ file, at: (part * (index + 0.5)) / files.length }));
  const rest = others.map((file, index) => ({ file, at: (index + 0.5) / others.length }));
  return [...first, ...rest].toSorted((a, b) => a.at - b.at).map(({ file }) => file);
}

/** The stores of the tests' bots. `QUEUE=redis` puts them on Redis. */
const BOT_STORE = resolve("lab/support/bot-store.ts");
/** Files with processes and browsers. They choose their stores themselves. */
const CHOOSING = ["test/{process,browser,lab}/**"];

/** Finds the tests of bots. `QUEUE=redis` changes nothing for the others. */
function findBotTests(): string[] {
  const known = new Map<string, boolean>([[BOT_STORE, true]]);
  function leadsToBots(path: string): boolean {
    const before = known.get(path);
    if (before !== undefined) return before;
    known.set(path, false);
    const imports = readFileSync(path, "utf8").matchAll(/^(?:import|\}) .*from "(\.[^"]+\.ts)";$/gm);
    const found = imports.some(([, target = ""]) => leadsToBots(resolve(dirname(path), target)));
    known.set(path, found);
    return found;
  }
  return globSync("test/**/*.test.ts", { exclude: CHOOSING }).filter((path) => leadsToBots(resolve(path)));
}

/** One project for all kinds of tests, so that each worker loads the sources only once. */
export default defineConfig({
  test: {
    include: process.env["QUEUE"] === "redis" ? findBotTests() : ["test/**/*.test.ts"],
    globalSetup: ["test/support/compiled.ts"],
    setupFiles: ["test/support/node-first.ts", "test/support/queue-mode.ts"],
    // Loading the sources for each file would take as long as all the tests.
    isolate: false,
    // Many tests wait for their own process or browser, so more workers than cores keep the cores busy. With six
    // workers, processes got so little of two cores that platforms' timeouts of three seconds expired.
    maxWorkers: 5,
    // Tests wait as long as there is progress (lab/support/patience.ts). These timeouts are for tests that hang anyway.
    testTimeout: 600_000,
    hookTimeout: 180_000,
    sequence: { sequencer: Mixed },
    // Node loads the sources, as it does for the service. Vite would transform them first and call across modules
    // through getters: a fifth slower for everything in a worker.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
