import { describe, expect, test } from "vitest";
import { repairArguments } from "../../src/gateway/repair-arguments.ts";

const whole = '{"city":"Paris","at":{"hour":9}}';

describe("the arguments of a call", () => {
  test("the client leaves JSON arguments unchanged", () => {
    for (const text of ["", whole, "null", '"text"', '{"a":{"a":1}}']) expect(repairArguments(text)).toBe(text);
  });

  test("the client removes a stray {} before the arguments", () => {
    expect(repairArguments(`{}${whole}`)).toBe(whole);
  });

  test("the client drops the second copy of arguments that came twice", () => {
    expect(repairArguments(`${whole}${whole}`)).toBe(whole);
  });

  test("the client uses the last fragment if each fragment repeats the previous ones", () => {
    for (const step of [1, 3, 7]) {
      const fragments = [];
      for (let end = step; end < whole.length; end += step) fragments.push(whole.slice(0, end));
      expect(repairArguments([...fragments, whole].join(""))).toBe(whole);
    }
  });

  test("the client leaves ambiguous or meaningless arguments unchanged", () => {
    for (const text of ['{"a":1}{"b":2}', '{"a":', "a{}", `${whole.slice(0, 9)}x`, `{"a":1}${whole}`]) {
      expect(repairArguments(text)).toBe(text);
    }
  });
});
