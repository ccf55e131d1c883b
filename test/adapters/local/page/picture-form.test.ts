import { describe, expect, test } from "vitest";
import {
  describeOptions,
  readPrompt,
  toForm,
  toImagineText,
  toOptions,
} from "../../../../adapters/local/page/picture-form.ts";
import type { FileRow } from "../../../../adapters/local/page/wire.ts";

const FILE: FileRow = {
  id: "f",
  name: "a.png",
  contentType: "image/png",
  sizeBytes: 1,
  isImage: true,
  width: 1,
  height: 1,
  altText: null,
  isSpoiler: false,
};

describe("the form for images at the local page", () => {
  test("the form uses the port's names for its options", () => {
    const form = {
      ratio: "16:9",
      size: "2K",
      count: "4",
      model: "m",
      isSpoiler: true,
      basis: { id: "p.1", file: FILE },
    };
    expect(toOptions(form)).toEqual({
      ratio: "16:9",
      size: "2K",
      count: "4",
      model: "m",
      spoiler: "true",
      basis: "p.1",
    });
  });

  test.for([{}, { ratio: "1:1" }, { count: "3", model: "m" }, { size: "4K", spoiler: "true" }])(
    "the form shows an image's request: %j",
    (options) => {
      expect(toOptions(toForm(options, undefined))).toEqual(options);
    },
  );

  test("the form summarizes its options in a few words", () => {
    expect(describeOptions({ ratio: "16:9", size: "2K", count: "4", model: "m", spoiler: "true", basis: "p.1" })).toBe(
      "16:9 · 2K · 4 images · m · covered",
    );
    expect(describeOptions({})).toBe("");
  });
});

describe("a text that requests an image", () => {
  test.for([
    ["/imagine a fox", "a fox"],
    ["/Imagine  a fox\nin the snow", "a fox\nin the snow"],
    ["/imagine", ""],
    ["/imagine ", ""],
  ] as const)("the text %j asks for an image of %j", ([text, prompt]) => expect(readPrompt(text)).toBe(prompt));

  test.for(["imagine a fox", "/imagined", "say /imagine", ""])("the text %j does not ask for an image", (text) => {
    expect(readPrompt(text)).toBeUndefined();
  });

  test("the page composes an image request from a prompt and reads it back", () =>
    expect(readPrompt(toImagineText(" a fox \n"))).toBe("a fox"));
});
