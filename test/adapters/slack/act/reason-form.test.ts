import { describe, expect, test } from "vitest";
import { createWebClient, postMessage } from "../../../../lab/slack-sim/web-api.ts";
import { startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

async function judge(stage: Awaited<ReturnType<typeof startInteractions>>) {
  const { slack, ada, general } = stage;
  const question = ada.say(general, "why?");
  const button = { type: "button", action_id: "bad", value: "bad:turn-1", text: { type: "plain_text", text: "Bad" } };
  const blocks = [{ type: "actions", elements: [button] }];
  const answer = { channel: general.id, thread_ts: question.ts, text: "Because.", blocks };
  const ts = await postMessage(createWebClient(slack), answer);
  const message = slack.answers(general, question).find((one) => one.ts === ts);
  if (message === undefined) throw new Error("There is no answer.");
  await ada.press(message, "bad");
  return { question, message };
}

const written = (value: string | null) => ({ reason: { value: { type: "plain_text_input", value } } });

describe("a bad rating on Slack", () => {
  test("a bad rating counts at once and opens a form, whose reason belongs to the same turn", async () => {
    const stage = await startInteractions();
    const { slack, ada, general, events, workspace } = stage;
    const { question } = await judge(stage);
    const conversationId = `slack:${workspace.teamId}:${general.id}:${question.ts}`;
    const author = { id: personOf(slack, ada) };
    const vote = { kind: "action", action: "bad", turnId: "turn-1", conversationId, author };
    expect(events).toMatchObject([vote]);
    expect(events[0]).not.toHaveProperty("reason");
    const form = await slack.until(() => slack.view(ada), "the form");
    await ada.submitView(form, written(" the wrong year "));
    expect(events.slice(1)).toMatchObject([{ ...vote, reason: "the wrong year" }]);
    expect(slack.view(ada)).toBeUndefined();
  });

  test("a bad rating needs no reason, and no one else can send its form", async () => {
    const stage = await startInteractions();
    const { slack, ada, bob, events, interactions, workspace } = stage;
    await judge(stage);
    const form = await slack.until(() => slack.view(ada), "the form");
    const { callback_id, private_metadata } = form.body;
    const view = { id: form.id, callback_id, private_metadata, state: { values: written("mine") } };
    const forged = { type: "view_submission", user: { id: bob.id }, view };
    expect(await interactions.onInteraction(forged, workspace)).toEqual({ events: [] });
    await ada.submitView(form, written(null));
    expect(events).toHaveLength(1);
  });

  test("a bad rating counts even if the form does not open", async () => {
    const stage = await startInteractions();
    stage.slack.failNext("views.open", { error: "internal_error" });
    await judge(stage);
    expect(stage.events).toMatchObject([{ kind: "action", action: "bad", turnId: "turn-1" }]);
  });
});
