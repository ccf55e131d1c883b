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

  test("that cannot be read is one problem", () => {
    const missing = () => {
      throw new Error("ENOENT");
    };
    expect(readPolicyFile("policy.yaml", missing).problems).toEqual(["must be the path of a file that can be read"]);
  });
});
