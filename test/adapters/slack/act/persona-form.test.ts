import { expect, test } from "vitest";
import { COMMANDS, startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const commands = [...COMMANDS, { name: "persona", description: "Says what I am." }];
const written = (persona: string | null, prompts: string | null) => ({
  persona: { value: { type: "plain_text_input", value: persona } },
  prompts: { value: { type: "plain_text_input", value: prompts } },
});

test("/persona without words opens a form with the current values, and its fields become one command", async () => {
  const readPersona = async () => ({ persona: "a pirate", prompts: ["Who is on call?", "Sum up today"] });
  const { slack, ada, general, events } = await startInteractions({ commands, readPersona });
  await ada.command("/persona", "", general);
  const form = await slack.until(() => slack.view(ada), "the form");
  expect(JSON.stringify(form.body)).toContain('"initial_value":"Who is on call?\\nSum up today"');
  expect(JSON.stringify(form.body)).toContain('"initial_value":"a pirate"');
  await ada.submitView(form, written("a nurse", null));
  expect(events).toMatchObject([
    {
      kind: "command",
      name: "persona",
      text: "",
      options: { persona: "a nurse", prompts: "" },
      author: { id: personOf(slack, ada) },
      reply: { channelId: general.id, visibleTo: personOf(slack, ada) },
    },
  ]);
});

test("/persona with words is a command, and no one can send another person's form", async () => {
  const { slack, ada, bob, general, events, interactions, workspace } = await startInteractions({ commands });
  await ada.command("/persona", "show", general);
  expect(events).toMatchObject([{ kind: "command", name: "persona", text: "show" }]);
  await ada.command("/persona", "", general);
  const form = await slack.until(() => slack.view(ada), "the form");
  const { callback_id, private_metadata } = form.body;
  const view = { id: form.id, callback_id, private_metadata, state: { values: written("mine", "mine") } };
  const forged = { type: "view_submission", user: { id: bob.id }, view };
  expect(await interactions.onInteraction(forged, workspace)).toEqual({ events: [] });
});

test("a persona form with too much text stays open and shows the error at its field", async () => {
  const { slack, ada, general, events } = await startInteractions({ commands });
  await ada.command("/persona", "", general);
  const form = await slack.until(() => slack.view(ada), "the form");
  const { response } = await ada.submitView(form, written("x".repeat(1_501), "a|b|c|d|e"));
  expect(response).toMatchObject({
    errors: {
      persona: "A persona can have at most 1500 characters; this one has 1501.",
      prompts: "I can suggest at most 4 prompts of up to 150 characters each.",
    },
  });
  expect(events).toEqual([]);
});

test("the adapter tells the person that the persona form did not open", async () => {
  const { slack, ada, general } = await startInteractions({ commands });
  slack.failNext("views.open", { error: "internal_error" });
  await ada.command("/persona", "", general);
  const told = await slack.until(() => slack.ephemerals(general, ada.id)[0], "the words");
  expect(told.shown).toContain("couldn't open the form");
});
