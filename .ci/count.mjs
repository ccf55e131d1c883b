// Prints the last line of a run from Vitest's JSON report. Fails if a test failed or none ran.
import { readFileSync } from "node:fs";

const report = readReport(process.argv[2]);
const { numPassedTests: passed = 0, numPendingTests: pending = 0, numTodoTests: todo = 0 } = report;
// A test file that cannot be loaded fails, although none of its tests ran.
const unloaded = (report.testResults ?? []).filter(
  (file) => file.status === "failed" && file.assertionResults.every(isNotFailed),
);
const failed = (report.numFailedTests ?? 0) + unloaded.length;

for (const { name, message } of unloaded) process.stdout.write(`not loaded: ${name}: ${message.split("\n")[0]}\n`);
if (pending + todo > 0) process.stdout.write(`${pending + todo} skipped\n`);
if (passed + failed === 0) process.stdout.write("No test ran.\n");
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function isNotFailed({ status }) {
  return status !== "failed";
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}
