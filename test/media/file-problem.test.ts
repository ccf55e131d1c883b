import { describe, expect, test } from "vitest";
import { FileProblem, findFileProblem } from "../../src/media/file-problem.ts";

describe("findFileProblem", () => {
  const problem = new FileProblem("gone", "is not there any more");

  test("finds the problem that an error is, or was caused by", () => {
    expect(findFileProblem(problem)).toBe(problem);
    expect(findFileProblem(new Error("a", { cause: new Error("b", { cause: problem }) }))).toBe(problem);
  });

  test("finds none in other errors, in things that are none and in a circle of causes", () => {
    const circle = new Error("circle");
    circle.cause = circle;
    for (const error of [new Error("other"), "text", undefined, circle]) expect(findFileProblem(error)).toBeUndefined();
  });
});
