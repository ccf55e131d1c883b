import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readPolicyFile } from "../../src/config/policy/policy-file.ts";
import { readBoundedText } from "../../src/config/read-text.ts";
import { makeDataDir } from "../support/service.ts";

function problemsOf(text: string): readonly string[] {
  return readPolicyFile("policy.yaml", () => text).problems;
}

describe("the policy file", () => {
  test("may be YAML or JSON, and may hold nothing, but not be empty", () => {
    expect(problemsOf("{}")).toEqual([]);
    expect(problemsOf("--- {} # nothing yet\n")).toEqual([]);
    for (const empty of ["", "\n", "# nothing yet\n", "---\n...\n", "~", "null", "\ufeff"]) {
      expect(problemsOf(empty), JSON.stringify(empty)).toEqual(["is empty: write {} for a policy without rules"]);
    }
  });

  test("names a key that comes twice, however many there are, and only the first problems of many", () => {
    expect(problemsOf("quotas: {}\naccess: {}\nquotas: {}\n")).toEqual(["is not valid YAML in line 3 (DUPLICATE_KEY)"]);
    const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join("\n");
    expect(problemsOf(keys)).toHaveLength(51);
    expect(problemsOf(keys).at(-1)).toBe("has 19950 more problems");
  });

  test("with more levels than its parser can follow is one problem", () => {
    expect(problemsOf("[".repeat(20_000)).length).toBeGreaterThan(0);
    expect(problemsOf("- ".repeat(20_000)).length).toBeGreaterThan(0);
    expect(problemsOf("{a: ".repeat(20_000)).length).toBeGreaterThan(0);
  });

  test("says which line is not valid", () => {
    expect(problemsOf("access: []\nquotas: [\n")).toEqual([expect.stringMatching(/^is not valid YAML in line \d \(/)]);
    expect(problemsOf("- a list")).toEqual(["must be an object"]);
  });

  test("lists sections that are not known, and which were meant", () => {
    expect(problemsOf("acces: []\ncolours: {}\n")).toEqual([
      "acces is not known; did you mean access?",
      "colours is not known",
    ]);
  });

  test("may use anchors, which it has, and in moderation", () => {
    const problem = [expect.stringMatching(/^has an alias \(\*\) of an anchor/)];
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

  test("that is longer than any policy is read no further than its bound, also if it has no size", async () => {
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

  test("that cannot be read is one problem", () => {
    const missing = () => {
      throw new Error("ENOENT");
    };
    expect(readPolicyFile("policy.yaml", missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
