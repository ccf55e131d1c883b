import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take a minute and more, for the most part in pauses. */
const LONGEST =
  /[\\/]test[\\/](process[\\/](two-processes|chaos|roles-\w+|service)|queue[\\/]redis[\\/]traps)\.test\.ts$/;
/** Files that wait for processes and browsers of their own, or for a bot's pauses: long, and they leave cores to others. */
const WAITING =
  /[\\/]test[\\/]((process|browser)[\\/]|adapters[\\/]slack[\\/](bot|write[\\/]outbound)|imagine-surfaces[\\/]slack|fault-loop)/;
/** The part of all files among which they begin: those at the end take no time, and none that waits is left for it. */
const BEGUN = 0.6;

/**
 * What waits is spread over what computes, the longest first: so that there is always something to compute while
 * others wait, and processes and browsers do not all start at once.
 */
class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const groups = Map.groupBy(sorted, ({ moduleId }) => [LONGEST, WAITING].find((files) => files.test(moduleId)));
    const waiting = [LONGEST, WAITING].flatMap((group) => groups.get(group) ?? []);
    return spread(waiting, BEGUN, groups.get(undefined) ?? []);
  }
}

/** Both in their order: the first ones evenly over a part of the others. */
function spread(files: TestSpecification[], part: number, others: TestSpecification[]): TestSpecification[] {
  const first = files.map((file, index) => ({ file, at: (part * (index + 0.5)) / files.length }));
  const rest = others.map((file, index) => ({ file, at: (index + 0.5) / others.length }));
  return [...first, ...rest].toSorted((a, b) => a.at - b.at).map(({ file }) => file);
}

/** One project for all: its workers load the sources once, whatever kind of test they come to. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/compiled.ts"],
    setupFiles: ["test/support/node-first.ts", "test/support/queue-mode.ts"],
    // To load the sources anew for each file costs as much as all the tests.
    isolate: false,
    // Many tests wait for a process or a browser of their own: more of them than cores keep the cores busy. With six,
    // which all began with the longest, processes had so little of two cores that platforms' bounds of three seconds ran out.
    maxWorkers: 5,
    // What a test waits for is bounded by progress (test/support/patience.ts); these bounds are for what hangs otherwise.
    testTimeout: 600_000,
    hookTimeout: 180_000,
    sequence: { sequencer: Mixed },
    // Node loads the sources, as it does for the service. Vite would transform them first, and call across modules
    // through getters: a fifth more for all that runs in a worker.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
