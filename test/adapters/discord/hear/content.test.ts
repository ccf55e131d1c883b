import { describe, expect, test } from "vitest";
import { readShown } from "../../../../adapters/discord/listen/content.ts";
import { toWhole } from "../../../../adapters/discord/listen/inbound.ts";
import { type Message, readSeen, readText } from "../../../../adapters/discord/listen/wording.ts";
import { readShapes } from "../../../support/shapes.ts";
import { NO_ROOMS } from "../stage.ts";

const botId = "1170000000000000099";
const names = { botId, rooms: NO_ROOMS };
const shapes = readShapes("discord").map(({ message, ...shape }) => ({
  ...shape,
  message: toWhole(message as unknown as Message, botId),
}));

describe("the shown content of a message on Discord", () => {
  test("is read from many apps", () => expect(shapes.length).toBeGreaterThan(20));

  test.each(shapes)("is text: $about", ({ message, text }) => {
    expect(readSeen(message, names)).toBe(text);
  });

  test("leaves out of a question the previews that Discord adds later", () => {
    const read = (name: string) => {
      const shape = shapes.find((one) => one.name === name);
      if (shape === undefined) throw new Error(`There is no shape ${name}.`);
      return readText(shape.message, names, "chain");
    };
    expect(read("link-preview")).toBe("https://blog.example.com/post");
    expect(read("poll")).toBe(
      read("poll-ended").replace("Poll", "Poll, several answers may be chosen").replace("Udon", "🍜 Udon"),
    );
    expect(read("poll")).not.toContain("(3)");
  });

  test("is empty for an empty message", () => expect(readShown({})).toBe(""));
});
