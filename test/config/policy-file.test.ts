import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir } from "../../lab/support/service.ts";
import { readPolicyFile } from "../../src/config/policy/policy-file.ts";
import { readBoundedText } from "../../src/config/read-text.ts";

function problemsOf(text: string): readonly string[] {
  return readPolicyFile("policy.yaml", () => text).problems;
}

describe("the policy file", () => {
  test("the policy file can be YAML or JSON, and can contain only comments but not be empty", () => {
    expect(problemsOf("{}")).toEqual([]);
    expect(problemsOf("--- {} # nothing yet\n")).toEqual([]);
    for (const empty of ["", "\n", "# nothing yet\n", "---\n...\n", "~", "null", "\ufeff"]) {
      expect(problemsOf(empty), JSON.stringify(empty)).toEqual(["is empty: write {} for a policy without rules"]);
    }
  });

  test("the service refuses a policy file with a key that occurs twice, and reports only the first of many problems", () => {
    expect(problemsOf("quotas: {}\naccess: {}\nquotas: {}\n")).toEqual(["is not valid YAML in line 3 (DUPLICATE_KEY)"]);
    const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join("\n");
    expect(problemsOf(keys)).toHaveLength(51);
    expect(problemsOf(keys).at(-1)).toBe("has 19950 more problems");
  });

  test("a policy file with more levels than its parser can follow is one problem", () => {
    expect(problemsOf("[".repeat(20_000)).length).toBeGreaterThan(0);
    expect(problemsOf("- ".repeat(20_000)).length).toBeGreaterThan(0);
    expect(problemsOf("{a: ".repeat(20_000)).length).toBeGreaterThan(0);
  });

  test("the policy file reports the line that is invalid", () => {
    expect(problemsOf("access: []\nquotas: [\n")).toEqual([expect.stringMatching(/^is not valid YAML in line \d \(/)]);
    expect(problemsOf("- a list")).toEqual(["must be an object"]);
  });

  test("the policy file reports unknown sections and the probable names", () => {
    expect(problemsOf("acces: []\ncolours: {}\n")).toEqual([
      "acces is not known; did you mean access?",
      "colours is not known",
    ]);
  });

  test("the policy file can use its own anchors, in moderation", () => {
    const problem = [expect.stringMatching(/^has an alias \(\*\) to a missing anchor/)];
    expect(problemsOf("access: { admins: &we ['person:1'], rules: [{ deny: chat, to: *we }] }")).toEqual([]);
    expect(problemsOf("access: *nobody")).toEqual(problem);
    const lines = ["- &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let n = 1; n < 9; n++)
      lines.push(
        `- &a${n} [${Array(9)
          .fill(`*a${n - 1}`)
          .join(", ")}]`,
      );
    expect(problemsOf(lines.join("\n"))).toEqual(problem);
  });

  test("the service reads a policy file that is too long only up to its limit, even if the file reports no size", async () => {
    const tooLong = ["must not have more than 500000 bytes"];
    expect(readPolicyFile("/dev/zero", readBoundedText).problems).toEqual(tooLong);
    const { path, remove } = await makeDataDir();
    onTestFinished(remove);
    const file = join(path, "policy.yaml");
    writeFileSync(file, "{}");
    truncateSync(file, 2 ** 40);
    expect(readPolicyFile(file, readBoundedText).problems).toEqual(tooLong);
    writeFileSync(file, `{} #${"x".repeat(499_996)}`);
    expect(readPolicyFile(file, readBoundedText).problems).toEqual([]);
  });

  test("an unreadable policy file is one problem", () => {
    const missing = () => {
      throw new Error("ENOENT");
    };
    expect(readPolicyFile("policy.yaml", missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
