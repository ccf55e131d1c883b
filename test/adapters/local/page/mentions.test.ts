import { describe, expect, test } from "vitest";
import { findMentions } from "../../../../adapters/local/page/mentions.ts";

describe("findMentions", () => {
  const names = ["Ada", "Ada Lovelace", "千恵", "R2"];
  const found = (text: string) => findMentions(text, names).map(({ start, end }) => text.slice(start, end));

  test.for([
    ["hi @Ada!", ["@Ada"]],
    ["@ada @ADA", ["@ada", "@ADA"]],
    ["@Ada Lovelace and @Ada", ["@Ada Lovelace", "@Ada"]],
    ["(@Ada)", ["@Ada"]],
    ["@千恵さん", ["@千恵"]],
    ["こんにちは@千恵", ["@千恵"]],
    ["@R2, @R2D2", ["@R2"]],
    ["@Adam @Adaé @Ada_", []],
    ["me@ada.example é@Ada", []],
    ["@", []],
    ["@@Ada", ["@Ada"]],
  ] as const)("finds in %j", ([text, expected]) => expect(found(text)).toEqual(expected));

  test("gives the name as it is known", () => {
    expect(findMentions("@ada", names)).toEqual([{ name: "Ada", start: 0, end: 4 }]);
  });

  test("comes to an end on a long row of signs", () => {
    expect(findMentions("@".repeat(200_000), names)).toEqual([]);
  });
});
