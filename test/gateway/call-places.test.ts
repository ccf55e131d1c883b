import { describe, expect, test } from "vitest";
import { type CallFragment, createPlaceOf } from "../../src/gateway/call-places.ts";

type Fragment = [index: unknown, id: string, name: string, args: string];

/** The place of each fragment of one answer. */
function placesOf(...fragments: Fragment[]): (number | undefined)[] {
  const placeOf = createPlaceOf();
  return fragments.map(([index, id, name, args]) => placeOf({ index, id, name, args } satisfies CallFragment));
}

describe("the place of a call", () => {
  test("is its index, whatever order the calls come in, also written as text", () => {
    expect(placesOf([1, "b", "g", ""], [0, "a", "f", "{"], [1, "", "", "{}"], ["0", "", "", "}"])).toEqual([
      1, 0, 1, 0,
    ]);
  });

  test("is a new one for each id where all calls have the same index", () => {
    expect(placesOf([0, "a", "f", '{"x":1}'], [0, "b", "f", '{"x"'], [0, "", "", ":2}"], [0, "c", "g", "{}"])).toEqual([
      0, 1, 1, 2,
    ]);
  });

  test("stays when a server repeats the id, or makes one anew for each fragment", () => {
    expect(placesOf([0, "a", "f", "{"], [0, "a", "f", "}"], [0, "a", "f", ""])).toEqual([0, 0, 0]);
    expect(placesOf([0, "r1", "f", ""], [0, "r2", "f", '{"x"'], [0, "r3", "f", ":1}"], [0, "r4", "", ""])).toEqual([
      0, 0, 0, 0,
    ]);
    expect(placesOf([undefined, "a", "f", "{"], [undefined, "a", "f", "}"])).toEqual([0, 0]);
  });

  test("is the next one without an index, for another id, or a name behind arguments that are whole", () => {
    expect(placesOf([undefined, "a", "f", ""], [undefined, "b", "f", "{}"], [undefined, "", "", ""])).toEqual([
      0, 1, 1,
    ]);
    expect(placesOf([undefined, "", "f", "{}"], [undefined, "", "f", '{"x":'], [undefined, "", "f", "1}"])).toEqual([
      0, 1, 1,
    ]);
    expect(placesOf([null, "", "f", "{}"], [null, "", "f", ""])).toEqual([0, 0]);
    expect(placesOf([0, "", "f", "{}"], [0, "", "", " \n"], [0, "", "f", '{"x":{}'], [0, "", "f", "}"])).toEqual([
      0, 0, 1, 1,
    ]);
  });

  test("is one that no other call has", () => {
    const places = placesOf([0, "a", "f", "{}"], [0, "b", "f", "{}"], [0, "c", "f", "{}"], [1, "d", "f", "{}"]);
    expect(places).toEqual([0, 1, 2, 3]);
  });

  test("is none for an absurd index, and for more calls than any answer has", () => {
    expect(placesOf([-1, "", "", ""], [128, "", "", ""], [1e9, "", "", ""])).toEqual([undefined, undefined, undefined]);
    const many = placesOf(...Array.from({ length: 130 }, (_, at): Fragment => [0, `id${at}`, "f", "{}"]));
    expect([many[127], many[128], many[129]]).toEqual([127, undefined, undefined]);
  });
});
