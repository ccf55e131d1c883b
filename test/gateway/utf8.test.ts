import { array, assert, nat, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { createUtf8Decoder } from "../../src/gateway/utf8.ts";

describe("createUtf8Decoder", () => {
  test("gives the same text wherever the bytes are cut", () => {
    assert(
      property(string({ unit: "binary" }), array(nat(40)), (text, cuts) => {
        const decode = createUtf8Decoder();
        let rest = Buffer.from(text);
        const bytes = rest.toString("utf8");
        let decoded = "";
        for (const cut of cuts) {
          decoded += decode(rest.subarray(0, cut));
          rest = rest.subarray(cut);
        }
        expect(decoded + decode(rest)).toBe(bytes);
      }),
    );
  });

  test("keeps a character that was cut until the rest of it comes", () => {
    const decode = createUtf8Decoder();
    const [euro, letter] = [Buffer.from("€"), Buffer.from("a")];
    expect(decode(Buffer.concat([letter, euro.subarray(0, 1)]))).toBe("a");
    expect(decode(euro.subarray(1, 1))).toBe("");
    expect(decode(Buffer.concat([euro.subarray(1), letter]))).toBe("€a");
    expect(decode(letter)).toBe("a");
  });

  test("shows bytes that are no text as such", () => {
    const decode = createUtf8Decoder();
    expect(decode(Buffer.from([0x61, 0xff, 0x62]))).toBe("a\uFFFDb");
  });
});
