import { describe, expect, test } from "vitest";
import { readShown } from "../../../../adapters/discord/hear/content.ts";
import { toWhole } from "../../../../adapters/discord/hear/inbound.ts";
import { type Message, readSeen, readText } from "../../../../adapters/discord/hear/wording.ts";
import { readShapes } from "../../../support/shapes.ts";
import { NO_ROOMS } from "../stage.ts";

const botId = "1170000000000000099";
const names = { botId, rooms: NO_ROOMS };
const shapes = readShapes("discord").map(({ message, ...shape }) => ({
  ...shape,
  message: toWhole(message as unknown as Message, botId),
}));

describe("the shown content of a message on Discord", () => {
  test("the bot reads the shown content of messages by many apps", () => expect(shapes.length).toBeGreaterThan(20));

  test.each(shapes)("the bot reads this content as text: $about", ({ message, text }) => {
    expect(readSeen(message, names)).toBe(text);
  });

  test("the shown content of a question leaves out previews that Discord adds later", () => {
    const read = (name: string) => {
      const shape = shapes.find((one) => one.name === name);
      if (shape === undefined) throw new Error(`There is no shape ${name}.`);
      return readText(shape.message, names, "chain");
    };
    expect(read("link-preview")).toBe("https://blog.example.com/post");
    expect(read("poll")).toBe(
      read("poll-ended").replace("Poll", "Poll, multiple answers allowed").replace("Udon", "🍜 Udon"),
    );
    expect(read("poll")).not.toContain("(3)");
  });

  test("an empty message has no shown content", () => expect(readShown({})).toBe(""));
});
