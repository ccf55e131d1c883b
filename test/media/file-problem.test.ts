import { expect, test } from "vitest";
import { findFileProblem } from "../../src/media/file-problem.ts";

test("findFileProblem finds nothing in other errors, other values or circular causes", () => {
  const circle = new Error("circle");
  circle.cause = circle;
  for (const error of [new Error("other"), "text", undefined, circle]) expect(findFileProblem(error)).toBeUndefined();
});
