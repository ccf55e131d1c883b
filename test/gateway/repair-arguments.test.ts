import { describe, expect, test } from "vitest";
import { repairArguments } from "../../src/gateway/repair-arguments.ts";

const whole = '{"city":"Paris","at":{"hour":9}}';

describe("the arguments of a call", () => {
  test("stay as they are if they are JSON", () => {
    for (const text of ["", whole, "null", '"text"', '{"a":{"a":1}}']) expect(repairArguments(text)).toBe(text);
  });

  test("lose a stray {} before them", () => {
    expect(repairArguments(`{}${whole}`)).toBe(whole);
  });

  test("are taken once if they came twice", () => {
    expect(repairArguments(`${whole}${whole}`)).toBe(whole);
  });

  test("are the last fragment if each fragment repeats what came before", () => {
    for (const step of [1, 3, 7]) {
      const fragments = [];
      for (let end = step; end < whole.length; end += step) fragments.push(whole.slice(0, end));
      expect(repairArguments([...fragments, whole].join(""))).toBe(whole);
    }
  });

  test("stay as they are if they can mean two things, or none", () => {
    for (const text of ['{"a":1}{"b":2}', '{"a":', "a{}", `${whole.slice(0, 9)}x`, `{"a":1}${whole}`]) {
      expect(repairArguments(text)).toBe(text);
    }
  });
});
