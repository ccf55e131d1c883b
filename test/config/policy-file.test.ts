import { describe, expect, test } from "vitest";
import { readPolicyFile } from "../../src/config/policy/policy-file.ts";

function problemsOf(text: string): readonly string[] {
  return readPolicyFile("policy.yaml", () => text).problems;
}

describe("the policy file", () => {
  test("may be YAML or JSON, and may say nothing", () => {
    expect(problemsOf("")).toEqual([]);
    expect(problemsOf("{}")).toEqual([]);
    expect(problemsOf("# nothing yet\n")).toEqual([]);
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

  test("that is longer than any policy is not read", () => {
    expect(problemsOf(`# ${"x".repeat(500_000)}`)).toEqual(["must not have more than 500000 characters"]);
  });

  test("that cannot be read is one problem", () => {
    const missing = () => {
      throw new Error("ENOENT");
    };
    expect(readPolicyFile("policy.yaml", missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
