import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../.ci/count.mjs", import.meta.url));
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "palaver-count-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The last line and the exit code for a report of these files. `undefined` means no report. */
function count(files?: Array<{ status: string; tests: string[] }>) {
  const path = join(folder, "report.json");
  rmSync(path, { force: true });
  if (files !== undefined) {
    const number = (status: string) => files.flatMap(({ tests }) => tests).filter((test) => test === status).length;
    const report = {
      numPassedTests: number("passed"),
      numFailedTests: number("failed"),
      numPendingTests: number("pending"),
      testResults: files.map(({ status, tests }) => ({
        name: "a.test.ts",
        status,
        message: "Cannot find module\nat x",
        assertionResults: tests.map((test) => ({ status: test })),
      })),
    };
    writeFileSync(path, JSON.stringify(report));
  }
  const { stdout, status } = spawnSync(process.execPath, [script, path], { encoding: "utf8" });
  return { last: stdout.trimEnd().split("\n").at(-1), said: stdout, code: status };
}

test("the report of a run in which every test passed counts as success", () => {
  expect(count([{ status: "passed", tests: ["passed", "passed"] }])).toMatchObject({
    last: "2 passed, 0 failed",
    code: 0,
  });
});

test("the report of a run with skipped tests counts as success and lists them", () => {
  const skipped = count([{ status: "passed", tests: ["passed", "pending"] }]);
  expect(skipped).toMatchObject({ said: "1 skipped\n1 passed, 0 failed\n", code: 0 });
});

test("the report of a run with a failed test counts as failure", () => {
  const failed = count([{ status: "failed", tests: ["passed", "failed"] }]);
  expect(failed).toMatchObject({ last: "1 passed, 1 failed", code: 1 });
});

test("the report counts a file that could not be loaded as one failure", () => {
  const unloaded = count([
    { status: "failed", tests: [] },
    { status: "passed", tests: ["passed"] },
  ]);
  expect(unloaded).toMatchObject({ said: "not loaded: a.test.ts: Cannot find module\n1 passed, 1 failed\n", code: 1 });
});

test("the report of a run without a test counts as failure, and so does a missing report", () => {
  expect(count([])).toMatchObject({ said: "No test ran.\n0 passed, 0 failed\n", code: 1 });
  expect(count()).toMatchObject({ last: "0 passed, 0 failed", code: 1 });
});
