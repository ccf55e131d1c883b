import { describe, expect, test } from "vitest";
import { describeCard, nameColor } from "../../src/text/card.ts";

describe("a card as text", () => {
  test("a card names its colour if apps use that colour for good or bad news", () => {
    const named = {
      red: [0xa30200, 0xe01e5a, 0xc0392b],
      orange: [0xdaa038, 0xe67e22],
      green: [0x2eb886, 0x00ff00],
      blue: [0x5865f2],
      yellow: [0xffff00],
      purple: [0x9b59b6],
      pink: [0xff1493],
    };
    for (const [name, colors] of Object.entries(named)) expect(colors.map(nameColor)).toEqual(colors.map(() => name));
    expect([0x000000, 0xffffff, 0x24292f, 0xdddddd].map(nameColor)).toEqual(Array(4).fill(undefined));
  });

  test("a card with only a colour is empty, and a card with only a headline consists of the headline", () => {
    expect(describeCard({ color: 0xff0000 })).toBe("");
    expect(describeCard({ before: " Hello ", color: 0xff0000, fields: [{ name: "", value: " " }] })).toBe("Hello");
  });

  test("a card omits an invalid time", () => {
    expect(describeCard({ footer: "CI", at: Number.NaN })).toBe("CI");
    expect(describeCard({ footer: "CI", at: 1e20 })).toBe("CI");
  });
});
