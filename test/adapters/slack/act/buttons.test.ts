import { expect, test } from "vitest";
import { toButtonValue } from "../../../../adapters/slack/write/draft.ts";
import type { PressedAction } from "../../../../src/port/events.ts";
import { startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

function toButton(actionId: string, value: string) {
  return { type: "button", action_id: actionId, value, text: { type: "plain_text", text: actionId } };
}

async function startAnswer(values: Readonly<Record<string, string>>) {
  const stage = await startInteractions();
  const { slack, ada, general, call } = stage;
  const question = ada.say(general, "hi");
  const elements = Object.entries(values).map(([actionId, value]) => toButton(actionId, value));
  const answer = {
    channel: general.id,
    thread_ts: question.ts,
    text: "hello",
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: "hello" } },
      { type: "actions", elements },
    ],
  };
  await call("chat.postMessage", answer);
  const [message] = slack.answers(general, question);
  if (message === undefined) throw new Error("There is no answer.");
  return { ...stage, question, message };
}

test("a button press names the turn, the channel and the person", async () => {
  const { slack, bob, general, question, message, events, workspace } = await startAnswer({ stop: "stop:turn:1" });
  expect(await bob.press(message, "stop")).toMatchObject({ isAcknowledged: true });
  const [event] = events;
  expect(event).toMatchObject({
    kind: "action",
    action: "stop",
    turnId: "turn:1",
    author: { id: personOf(slack, bob), isModerator: true },
    conversationId: `slack:${workspace.teamId}:${general.id}:${question.ts}`,
    reply: { channelId: general.id, threadId: question.ts },
  });
  expect(event?.reply.visibleTo).toBeUndefined();
  expect(JSON.parse(JSON.stringify(event))).toEqual(event);
});

test("the adapter turns each press of a button into one action", async () => {
  const actions: PressedAction[] = ["stop", "retry", "continue", "good", "bad", "again", "vary", "upscale", "delete"];
  const buttons = actions.map((action) => [action, toButtonValue({ action, turnId: "t" })]);
  const { ada, message, events } = await startAnswer(Object.fromEntries(buttons));
  for (const action of [...actions, "again"]) await ada.press(message, action);
  expect(events).toMatchObject([...actions, "again"].map((action) => ({ action, turnId: "t" })));
  expect(new Set(events.map(({ key }) => key)).size).toBe(events.length);
});

test("pressing an unknown button tells the person that it no longer works", async () => {
  const { slack, ada, general, message, events } = await startAnswer({ old: "gone:t" });
  expect(await ada.press(message, "old")).toMatchObject({ isAcknowledged: true });
  const told = await slack.until(() => slack.ephemerals(general, ada.id)[0], "the answer");
  expect(told.shown).toMatch(/no longer works/);
  expect(events).toEqual([]);
  expect(slack.texts(general)).toEqual(["hello"]);
});

test("the result of a button at the top level of a channel goes into the thread of its message", async () => {
  const { slack, ada, general, call, events, workspace } = await startInteractions();
  const blocks = [{ type: "actions", elements: [toButton("again", "again:job.1")] }];
  await call("chat.postMessage", { channel: general.id, text: "a picture", blocks });
  const [picture] = slack.answers(general);
  if (picture === undefined) throw new Error("There is no picture.");
  await ada.press(picture, "again");
  const conversationId = `slack:${workspace.teamId}:${general.id}:${picture.ts}`;
  expect(events).toMatchObject([{ conversationId, reply: { threadId: picture.ts } }]);
});

test("Edit under a private image creates a private image", async () => {
  const { slack, ada, general, call, events } = await startInteractions();
  const blocks = [{ type: "actions", elements: [toButton("edit", "edit:job.1")] }];
  await call("chat.postEphemeral", { channel: general.id, user: ada.id, text: "a picture", blocks });
  const [shown] = slack.ephemerals(general, ada.id);
  if (shown === undefined) throw new Error("Nothing is shown.");
  await ada.press(shown, "edit");
  const view = await slack.until(() => slack.view(ada), "the form");
  await ada.submitView(view, { prompt: { value: { value: "a dog" } } });
  expect(events).toMatchObject([{ options: { basis: "job.1" }, reply: { visibleTo: personOf(slack, ada) } }]);
});

test("a button under an ephemeral message works", async () => {
  const { slack, ada, general, call, events } = await startInteractions();
  const blocks = [{ type: "actions", elements: [toButton("retry", "retry:t")] }];
  const ephemeral = { channel: general.id, user: ada.id, text: "psst", blocks };
  await call("chat.postEphemeral", ephemeral);
  const [shown] = slack.ephemerals(general, ada.id);
  if (shown === undefined) throw new Error("Nothing is shown.");
  await ada.press(shown, "retry");
  expect(events).toMatchObject([
    { action: "retry", turnId: "t", reply: { channelId: general.id, visibleTo: personOf(slack, ada) } },
  ]);
  expect(events[0]?.reply.threadId).toBeUndefined();
});
