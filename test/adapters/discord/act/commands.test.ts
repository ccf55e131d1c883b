import type { APIApplicationCommandAutocompleteInteraction } from "discord.js";
import { describe, expect, test } from "vitest";
import { completeModels } from "../../../../adapters/discord/act/commands.ts";

function typing(value: string): APIApplicationCommandAutocompleteInteraction {
  return { data: { options: [{ name: "name", type: 3, value, focused: true }] } } as never;
}

describe("model suggestions", () => {
  test("/model suggests the models that match the typed text, at most 25", async () => {
    const models = [...Array.from({ length: 40 }, (_, index) => `Chat-${index}`), "paint", "x".repeat(101)];
    const propose = (typed: string) => completeModels(typing(typed), async () => models);
    expect(await propose("PAI")).toEqual([{ name: "paint", value: "paint" }]);
    expect(await propose("")).toHaveLength(25);
    expect(await propose("xx")).toEqual([]);
  });

  test("/model suggests nothing if the list of models fails or comes late", async () => {
    const failing = () => Promise.reject(new Error("down"));
    expect(await completeModels(typing(""), failing)).toEqual([]);
    expect(await completeModels(typing(""), () => new Promise(() => {}))).toEqual([]);
  });
});
