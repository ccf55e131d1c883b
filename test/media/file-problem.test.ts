import { describe, expect, test } from "vitest";
import { FileProblem, findFileProblem } from "../../src/media/file-problem.ts";

describe("the problem of a file", () => {
  const problem = new FileProblem("gone", "no longer exists");

  test("findFileProblem finds the problem in an error or its causes", () => {
    expect(findFileProblem(problem)).toBe(problem);
    expect(findFileProblem(new Error("a", { cause: new Error("b", { cause: problem }) }))).toBe(problem);
  });

  test("findFileProblem finds nothing in other errors, other values or circular causes", () => {
    const circle = new Error("circle");
    circle.cause = circle;
    for (const error of [new Error("other"), "text", undefined, circle]) expect(findFileProblem(error)).toBeUndefined();
  });
});
