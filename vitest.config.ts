import { defineConfig } from "vitest/config";

/** To load the sources anew for each file costs as much as all the tests. */
const SHARED = { isolate: false, setupFiles: ["test/support/node-first.ts"] };

/** What a test waits for is bounded by progress (test/support/patience.ts); these bounds are for what hangs otherwise. */
const SLOW = { testTimeout: 600_000, hookTimeout: 180_000 };

/** Unit tests share two cores with the processes and browsers of the others, so every project runs its files side by side. */
export default defineConfig({
  test: {
    // Many tests wait for a process or a browser of their own: more of them than cores keep the cores busy.
    maxWorkers: 5,
    projects: [
      {
        test: {
          ...SHARED,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/process/**", "test/browser/**"],
          testTimeout: 300_000,
        },
      },
      { test: { ...SHARED, ...SLOW, name: "process", include: ["test/process/**/*.test.ts"] } },
      { test: { ...SHARED, ...SLOW, name: "browser", include: ["test/browser/**/*.test.ts"] } },
    ],
  },
});
