import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take a minute and more, for the most part in pauses. */
const LONGEST =
  /[\\/]test[\\/](process[\\/](two-processes|chaos|roles-\w+|service)|queue[\\/]redis[\\/]traps)\.test\.ts$/;
/** Files that wait for processes and browsers of their own: long, and they leave cores to others. */
const WAITING = /[\\/]test[\\/](process|browser)[\\/]/;

/** The longest files begin first, so that what computes fills their pauses and none of them is left for the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const groups = Map.groupBy(sorted, ({ moduleId }) => [LONGEST, WAITING].find((files) => files.test(moduleId)));
    return [LONGEST, WAITING, undefined].flatMap((group) => groups.get(group) ?? []);
  }
}

/** One project for all: its workers load the sources once, whatever kind of test they come to. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/node-first.ts", "test/support/queue-mode.ts"],
    // To load the sources anew for each file costs as much as all the tests.
    isolate: false,
    // Many tests wait for a process or a browser of their own: more of them than cores keep the cores busy. With six the
    // processes of the longest files had so little of two cores that platforms' bounds of three seconds ran out.
    maxWorkers: 4,
    // What a test waits for is bounded by progress (test/support/patience.ts); these bounds are for what hangs otherwise.
    testTimeout: 600_000,
    hookTimeout: 180_000,
    sequence: { sequencer: LongestFirst },
  },
});
