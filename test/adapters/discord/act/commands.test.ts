import type { APIApplicationCommandAutocompleteInteraction } from "discord.js";
import { describe, expect, test } from "vitest";
import { completeModels } from "../../../../adapters/discord/interactions/acknowledge.ts";

function typing(value: string): APIApplicationCommandAutocompleteInteraction {
  return { data: { options: [{ name: "name", type: 3, value, focused: true }] } } as never;
}

describe("proposals", () => {
  test("are the models with what was typed, twenty-five at most", async () => {
    const models = [...Array.from({ length: 40 }, (_, index) => `Chat-${index}`), "paint", "x".repeat(101)];
    const propose = (typed: string) => completeModels(typing(typed), async () => models);
    expect(await propose("PAI")).toEqual([{ name: "paint", value: "paint" }]);
    expect(await propose("")).toHaveLength(25);
    expect(await propose("xx")).toEqual([]);
  });

  test("are none when the list cannot be had, or does not come in time", async () => {
    const failing = () => Promise.reject(new Error("down"));
    expect(await completeModels(typing(""), failing)).toEqual([]);
    expect(await completeModels(typing(""), () => new Promise(() => {}))).toEqual([]);
  });
});
