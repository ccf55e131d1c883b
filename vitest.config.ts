import { defineConfig } from "vitest/config";

/** Unit tests share two cores with the processes and browsers of the others, so every project runs its files side by side. */
export default defineConfig({
  test: {
    // Many tests wait for a process or a browser of their own: more of them than cores keep the cores busy.
    maxWorkers: 5,
    // What a test waits for is bounded by progress (test/support/patience.ts); these bounds are for what hangs otherwise.
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/process/**", "test/browser/**"],
          testTimeout: 90_000,
          // To load the sources anew for each file costs as much as all the tests.
          isolate: false,
          setupFiles: ["test/support/node-first.ts"],
        },
      },
      { test: { name: "process", include: ["test/process/**/*.test.ts"], testTimeout: 600_000, hookTimeout: 180_000 } },
      { test: { name: "browser", include: ["test/browser/**/*.test.ts"], testTimeout: 600_000, hookTimeout: 180_000 } },
    ],
  },
});
