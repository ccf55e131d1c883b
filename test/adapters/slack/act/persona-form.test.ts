import { expect, test } from "vitest";
import { COMMANDS, startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const commands = [...COMMANDS, { name: "persona", description: "Says what I am." }];
const written = (persona: string | null, prompts: string | null) => ({
  persona: { value: { type: "plain_text_input", value: persona } },
  prompts: { value: { type: "plain_text_input", value: prompts } },
});

test("/persona alone on Slack opens a form with what is set, whose fields come as one command", async () => {
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

test("/persona with words on Slack is the command, and nobody sends the form of another", async () => {
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

test("a form for a persona with too much in it stays open on Slack, with what is wrong at its field", async () => {
  const { slack, ada, general, events } = await startInteractions({ commands });
  await ada.command("/persona", "", general);
  const form = await slack.until(() => slack.view(ada), "the form");
  const { response } = await ada.submitView(form, written("x".repeat(1_501), "a|b|c|d|e"));
  expect(response).toMatchObject({
    errors: {
      persona: "A persona has at most 1500 characters, and this has 1501.",
      prompts: "At most 4 prompts of 150 characters can be suggested.",
    },
  });
  expect(events).toEqual([]);
});

test("a form for a persona that Slack does not open is said to whoever asked for it", async () => {
  const { slack, ada, general } = await startInteractions({ commands });
  slack.failNext("views.open", { error: "internal_error" });
  await ada.command("/persona", "", general);
  const told = await slack.until(() => slack.ephemerals(general, ada.id)[0], "the words");
  expect(told.shown).toContain("could not be opened");
});
