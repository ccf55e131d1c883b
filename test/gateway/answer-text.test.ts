import { array, assert, nat, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { createAnswerText } from "../../src/gateway/answer-text.ts";
import type { ChunkChoice } from "../../src/gateway/chunks.ts";

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

function pieces(text: string, places: readonly number[]): string[] {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  return cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
}

describe("deltas that repeat all earlier text", () => {
  const sentence = "The answer is forty-two, as everybody knows.";

  test("the client shows repeated deltas once", () => {
    const words = sentence.split(/(?<= )/);
    const grown = words.map((_, index) => words.slice(0, index + 1).join(""));
    expect(read(...grown).said).toBe(sentence);
    expect(read(...grown, sentence).said).toBe(sentence);
    expect(read("Hel", "Hello", "Hello,", "Hello, you").said).toBe("Hello, you");
  });

  test("the client distinguishes repeated deltas from words that start alike", () => {
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

describe("an image written as base64 in the text", () => {
  const url = `data:image/png;base64,${Buffer.from("not really a picture".repeat(20)).toString("base64")}`;

  test("base64 in the text becomes an image, however the deltas split it, and never text", () => {
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

  test("a base64 image can end the answer", () => {
    expect(read("Here: ", url)).toMatchObject({ said: "Here: ", pictures: [url] });
  });

  test("text that only resembles base64 stays text", () => {
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
