import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRanking, toTerms } from "../../src/tools/ranking.ts";

function rank(query: string, ...texts: string[]): string[] {
  const ranking = createRanking<{ text: string; at: number }>(query);
  ranking.add(texts.map((text, at) => ({ text, at })));
  return ranking.best(10).map(({ text }) => text);
}

describe("the terms of a text", () => {
  test("the terms of a text ignore case, width and accents", () => {
    expect(toTerms("Café CAFE ｃａｆｅ́")).toEqual(["cafe", "cafe", "cafe"]);
  });

  test("the terms of a text distinguish kana that differ by a voicing mark", () => {
    expect(toTerms("かき")).not.toEqual(toTerms("かぎ"));
    expect(toTerms("ガギ")).toEqual(toTerms("ｶﾞｷﾞ"));
  });
});

describe("the ranking of texts", () => {
  test("the text with the rarer word ranks first", () => {
    const common = Array.from({ length: 20 }, (_, index) => `server ${index}`);
    expect(rank("server postgres", ...common, "since Monday we are on postgres")[0]).toBe(
      "since Monday we are on postgres",
    );
  });

  test("the text with more of the words ranks first", () => {
    expect(rank("red brick house", "a red car", "a red brick house", "a house")[0]).toBe("a red brick house");
  });

  test("the ranking omits a text with none of the words", () => {
    expect(rank("zebra", "a horse", "a zebra crossing")).toEqual(["a zebra crossing"]);
    expect(rank("?!…", "a horse")).toEqual([]);
  });

  test("the ranking finds a word by another of its forms", () => {
    expect(rank("deployment", "nothing", "we deployed on Friday")).toEqual(["we deployed on Friday"]);
  });

  test("the ranking finds Japanese inside a sentence", () => {
    expect(rank("会議室", "昨日は雨でした。", "来週の会議は会議室Bで行います。", "会議は中止です。")[0]).toBe(
      "来週の会議は会議室Bで行います。",
    );
  });

  test("the newer of two equal matches ranks first, whatever the order of input", () => {
    const ranking = createRanking("x");
    ranking.add([{ text: "x", at: 3 }]);
    ranking.add([
      { text: "x", at: 1 },
      { text: "x", at: 9 },
    ]);
    expect(ranking.best(2).map(({ at }) => at)).toEqual([9, 3]);
  });

  test("the ranking always finds a text by one of its words", () => {
    const word = fc.string({
      unit: fc.constantFrom("a", "é", "日", "カ", "ー", "б", "7", "한"),
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), fc.nat(), (words, pick) => {
        const query = words[pick % words.length] ?? "";
        expect(rank(query, "zzz", words.join(" "))).toContain(words.join(" "));
      }),
    );
  });
});
