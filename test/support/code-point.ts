import fc from "fast-check";

const SURROGATES = { first: 0xd800, last: 0xdfff };

/**
 * Any character that can be encoded, as the unit for `fc.string`. Half of the characters are ASCII. Creating
 * fast-check's own "binary" takes more than a second.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x10ffff }))
  .filter((point) => point < SURROGATES.first || point > SURROGATES.last)
  .map((point) => String.fromCodePoint(point));
