import fc from "fast-check";

const SURROGATES = { first: 0xd800, last: 0xdfff };

/**
 * A character of any text that can be encoded: the unit of `fc.string`. One half of them is ASCII. fast-check's own
 * "binary" takes more than a second of computing to be made.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x10ffff }))
  .filter((point) => point < SURROGATES.first || point > SURROGATES.last)
  .map((point) => String.fromCodePoint(point));
