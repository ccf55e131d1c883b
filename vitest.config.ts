import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that wait for processes and browsers of their own: the longest, and the ones that leave cores to others. */
const WAITING = /[\\/]test[\\/](process|browser)[\\/]/;

/** The files that wait begin first, so that what computes fills their pauses and none of them is left for the end. */
class WaitingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const [waiting, others] = [true, false].map((waits) =>
      sorted.filter((file) => WAITING.test(file.moduleId) === waits),
    );
    return [...(waiting ?? []), ...(others ?? [])];
  }
}

/** One project for all: its workers load the sources once, whatever kind of test they come to. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/node-first.ts"],
    // To load the sources anew for each file costs as much as all the tests.
    isolate: false,
    // Many tests wait for a process or a browser of their own: more of them than cores keep the cores busy.
    maxWorkers: 5,
    // What a test waits for is bounded by progress (test/support/patience.ts); these bounds are for what hangs otherwise.
    testTimeout: 600_000,
    hookTimeout: 180_000,
    sequence: { sequencer: WaitingFirst },
  },
});
