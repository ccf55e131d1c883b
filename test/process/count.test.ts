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

test.each([
  ["passes if every test passed", [{ status: "passed", tests: ["passed", "passed"] }], "2 passed, 0 failed\n", 0],
  [
    "passes and lists skipped tests",
    [{ status: "passed", tests: ["passed", "pending"] }],
    "1 skipped\n1 passed, 0 failed\n",
    0,
  ],
  ["fails with a failed test", [{ status: "failed", tests: ["passed", "failed"] }], "1 passed, 1 failed\n", 1],
  [
    "fails with a file that could not be loaded",
    [
      { status: "failed", tests: [] },
      { status: "passed", tests: ["passed"] },
    ],
    "not loaded: a.test.ts: Cannot find module\n1 passed, 1 failed\n",
    1,
  ],
  ["fails without a test", [], "No test ran.\n0 passed, 0 failed\n", 1],
])("the count of a run %s", (_, files, said, code) => expect(count(files)).toMatchObject({ said, code }));

test("the count of a run fails without a report", () => {
  expect(count()).toMatchObject({ last: "0 passed, 0 failed", code: 1 });
});
