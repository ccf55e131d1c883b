import {
  ActionRowBuilder,
  FileUploadBuilder,
  LabelBuilder,
  ModalBuilder,
  StringSelectMenuBuilder,
  TextInputBuilder,
  TextInputStyle,
} from "discord.js";
import { describe, expect, test } from "vitest";
import { fieldsOf, findModalProblems } from "../../../lab/discord-sim/modal-rules.ts";
import type { Payload } from "../../../lab/discord-sim/world.ts";

function toForm(): Payload {
  const label = (name: string) => new LabelBuilder().setLabel(name);
  const text = new TextInputBuilder().setCustomId("prompt").setStyle(TextInputStyle.Paragraph);
  const select = new StringSelectMenuBuilder().setCustomId("ratio").addOptions({ label: "1:1", value: "1:1" });
  const files = new FileUploadBuilder().setCustomId("files").setMinValues(0).setMaxValues(10);
  return new ModalBuilder()
    .setCustomId("form")
    .setTitle("Form")
    .addLabelComponents(
      label("Prompt").setTextInputComponent(text),
      label("Ratio").setStringSelectMenuComponent(select),
      label("Files").setFileUploadComponent(files),
    )
    .toJSON() as unknown as Payload;
}

function change(index: number, more: Payload, ofLabel: Payload = {}): Payload {
  const form = toForm();
  const components = (form["components"] as Payload[]).map((holder, at) => {
    if (at !== index) return holder;
    return { ...holder, ...ofLabel, component: { ...(holder["component"] as Payload), ...more } };
  });
  return { ...form, components };
}

describe("a form in the simulator", () => {
  test("the simulator accepts a form that the library builds, and finds its fields", () => {
    expect(findModalProblems(toForm())).toEqual([]);
    expect([...fieldsOf(toForm()).keys()]).toEqual(["prompt", "ratio", "files"]);
  });

  test("the simulator accepts a form with its text fields in rows", () => {
    const text = new TextInputBuilder().setCustomId("prompt").setStyle(TextInputStyle.Short).setLabel("Prompt");
    const row = new ActionRowBuilder<TextInputBuilder>().addComponents(text).toJSON();
    expect(findModalProblems({ custom_id: "form", title: "Form", components: [row] })).toEqual([]);
  });

  const options = (count: number, value = (index: number) => `${index}`) =>
    Array.from({ length: count }, (_, index) => ({ label: "x", value: value(index) }));

  test.each<[string, Payload, string]>([
    ["six fields", { ...toForm(), components: Array.from({ length: 6 }, () => ({ type: 10 })) }, "components"],
    ["a long title", { ...toForm(), title: "x".repeat(46) }, "title"],
    ["a long id", { ...toForm(), custom_id: "x".repeat(101) }, "custom_id"],
    ["a field outside of a label", { ...toForm(), components: [{ type: 4, custom_id: "a" }] }, "type"],
    ["a long label", change(0, {}, { label: "x".repeat(46) }), "label"],
    ["too much text filled in", change(0, { value: "x".repeat(4_001) }), "value"],
    ["a choice of nothing", change(1, { options: [] }), "options"],
    ["a choice of too much", change(1, { options: options(26) }), "options"],
    ["a choice between the same", change(1, { options: options(2, () => "same") }), "options"],
    ["too many files", change(2, { max_values: 11 }), "max_values"],
  ])("the simulator refuses a form with %s", (_, form, field) => {
    expect(findModalProblems(form).map(({ path }) => path.at(-1))).toContain(field);
  });
});
