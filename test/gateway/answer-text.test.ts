import { array, assert, nat, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { createAnswerText } from "../../src/gateway/answer-text.ts";
import type { ChunkChoice } from "../../src/gateway/chunks.ts";

/** Reads deltas to the end: the text, the pictures, and all that was shown before the end. */
function read(...deltas: string[]) {
  const text = createAnswerText();
  const shown: string[] = [];
  const pictures: string[] = [];
  for (const content of deltas) {
    const choice: ChunkChoice = { index: 0, delta: { content }, finish_reason: null };
    text.apply(choice);
    shown.push(choice.delta.content ?? "");
    pictures.push(...(choice.delta.pictures ?? []));
  }
  const rest = text.rest();
  return { said: shown.join("") + rest.content, shown, pictures: [...pictures, ...rest.pictures] };
}

/** A text cut at these places. */
function pieces(text: string, places: readonly number[]): string[] {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  return cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
}

describe("deltas that repeat all of the text so far", () => {
  const sentence = "The answer is forty-two, as everybody knows.";

  test("are shown once", () => {
    const words = sentence.split(/(?<= )/);
    const grown = words.map((_, index) => words.slice(0, index + 1).join(""));
    expect(read(...grown).said).toBe(sentence);
    expect(read(...grown, sentence).said).toBe(sentence);
    expect(read("Hel", "Hello", "Hello,", "Hello, you").said).toBe("Hello, you");
  });

  test("are told from words that begin alike", () => {
    for (const deltas of [
      ["ha", "haha", "!"],
      ["1", "10", "0"],
      ["-", "--", "----"],
      ["x", "x", "x"],
      ["a", "ab"],
    ]) {
      expect(read(...deltas).said).toBe(deltas.join(""));
    }
  });
});

describe("a picture that is written as base64 in the text", () => {
  const url = `data:image/png;base64,${Buffer.from("not really a picture".repeat(20)).toString("base64")}`;

  test("is a picture, however the deltas cut it, and never text", () => {
    for (const written of [`![cat](${url})`, url, `<img src="${url}">`]) {
      const whole = `Here it is:\n\n${written}\n\nDo you like it?`;
      assert(
        property(array(nat(), { maxLength: 12 }), (places) => {
          const { said, pictures, shown } = read(...pieces(whole, places));
          expect(pictures).toEqual([url]);
          expect(said.replace(/\s+/g, " ")).toBe("Here it is: Do you like it?");
          expect(shown.join("")).not.toMatch(/base64|data:|!\[/);
        }),
      );
    }
  });

  test("can end the answer", () => {
    expect(read("Here: ", url)).toMatchObject({ said: "Here: ", pictures: [url] });
  });

  test("is not found in text that only looks alike", () => {
    for (const text of [
      "the word database",
      "![a cat](https://example.com/cat.png)",
      "a < b!",
      "data:text/plain,hi",
      "d",
    ]) {
      assert(
        property(array(nat(), { maxLength: 6 }), (places) => {
          expect(read(...pieces(text, places))).toMatchObject({ said: text, pictures: [] });
        }),
      );
    }
  });
});
