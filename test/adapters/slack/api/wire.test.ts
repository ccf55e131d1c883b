import { describe, expect, test } from "vitest";
import { readText, toBodies, toBody } from "../../../../adapters/slack/api/wire.ts";

describe("a payload of Slack", () => {
  test("toBody returns an object, or an empty one", () => {
    expect(toBody({ a: 1 })).toEqual({ a: 1 });
    for (const odd of [undefined, null, 5, "x", [1]]) expect(toBody(odd)).toEqual({});
  });

  test("toBodies returns a list of objects, or an empty one", () => {
    expect(toBodies([{ a: 1 }, null])).toEqual([{ a: 1 }, {}]);
    for (const odd of [undefined, null, "x", { length: 1 }]) expect(toBodies(odd)).toEqual([]);
  });

  test("readText returns text that is not empty, or undefined", () => {
    expect(readText("x")).toBe("x");
    for (const odd of [undefined, null, "", 5, {}]) expect(readText(odd)).toBeUndefined();
  });
});
