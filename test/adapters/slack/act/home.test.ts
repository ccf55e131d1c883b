import { describe, expect, test } from "vitest";
import { HOME_ACTIONS, withHome } from "../../../../adapters/slack/act/home.ts";
import { fakePlatform } from "../../../../lab/support/fake-platform.ts";
import type { About } from "../../../../src/port/catalogue.ts";
import { SinkError } from "../../../../src/port/errors.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import { type InteractionStageOptions, startInteractions } from "../interaction-stage.ts";
import { draft, signal } from "../stage.ts";
import { personOf } from "../workspace.ts";

const ABOUT: About = {
  model: "sandbox-text",
  persona: "You are <a pirate>.",
  answerOptions: "with temperature 0.2, as JSON",
  kept: { entries: 12, conversations: 1 },
  used: "12 tokens",
};

async function openHome(options: InteractionStageOptions = {}) {
  const stage = await startInteractions(options);
  stage.ada.openHome();
  const view = await stage.slack.until(() => stage.slack.home(stage.ada), "the home");
  return { ...stage, view, text: JSON.stringify(view.body) };
}

describe("the home tab", () => {
  test("the home tab shows what the bot does, its commands, and the person's settings", async () => {
    const asked: unknown[] = [];
    const { slack, ada, text, workspace } = await openHome({
      readAbout: async (who) => {
        asked.push(who);
        return ABOUT;
      },
    });
    for (const part of [
      "Mention me in a channel",
      "`/ask`",
      "`/model`",
      "!model",
      "12 messages in 1 conversation.",
      "&lt;a pirate&gt;",
      "answers you there, with temperature 0.2, as JSON.",
      "Create an image",
      '"initial_option":{"text":{"type":"plain_text","text":"sandbox-text"',
    ]) {
      expect(text).toContain(part);
    }
    expect(asked).toMatchObject([
      {
        platform: "slack",
        workspaceId: workspace.teamId,
        author: { id: personOf(slack, ada) },
        channelId: ada.direct().id,
      },
    ]);
  });

  test("the adapter publishes the home tab after a rate limit ends", async () => {
    const { slack, ada } = await startInteractions();
    slack.failNext("views.publish", { retryAfterS: 1 });
    ada.openHome();
    await slack.until(() => slack.home(ada), "the home");
    expect(slack.requests.filter(({ method }) => method === "views.publish")).toHaveLength(2);
  });

  test("the home tab leaves out the parts that cannot be read", async () => {
    const { text } = await openHome({
      readAbout: async () => Promise.reject(new Error("the store is away")),
      listModels: async () => Promise.reject(new Error("the gateway is away")),
      imagine: undefined,
    });
    expect(text).toContain("Your data");
    expect(text).not.toContain("static_select");
    expect(text).not.toContain("Create an image");
  });

  test("the home tab lists as many models as Slack allows", async () => {
    const models = Array.from({ length: 300 }, (_, index) => `model-${index}`);
    const { view } = await openHome({ listModels: async () => ["x".repeat(76), ...models] });
    expect(JSON.stringify(view.body).match(/"value":"model-\d+"/g)).toHaveLength(100);
  });

  test("choosing a model on the home tab sets the model of the direct conversation", async () => {
    const { slack, ada, events, view, workspace } = await openHome();
    const selected_option = { value: "sandbox-text" };
    await ada.pressInView(view, { type: "static_select", action_id: HOME_ACTIONS.model, selected_option });
    const directId = ada.direct().id;
    expect(events).toMatchObject([
      {
        kind: "command",
        name: "model",
        text: "sandbox-text",
        conversationId: `slack:${workspace.teamId}:${directId}`,
        author: { id: personOf(slack, ada) },
        reply: { channelId: directId },
      },
    ]);
  });

  test("the home tab of one person does nothing for another", async () => {
    const { ada, bob, events, view } = await openHome();
    const { userId: _, ...old } = JSON.parse(String(view.body["private_metadata"])) as Record<string, unknown>;
    const forged = { ...view, body: { ...view.body, private_metadata: JSON.stringify(old) } };
    for (const [person, shown] of [
      [bob, view],
      [ada, forged],
    ] as const) {
      await person.pressInView(shown, { type: "button", action_id: HOME_ACTIONS.forget });
    }
    expect(events).toEqual([]);
  });

  test("the home tab exports and erases the person's data", async () => {
    const { ada, events, view } = await openHome();
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.export });
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.forget });
    expect(events).toMatchObject([
      { name: "export", text: "" },
      { name: "forget", text: "everything for good" },
    ]);
    expect(new Set(events.map(({ key }) => key)).size).toBe(2);
  });

  test("the home tab opens the form for images in the direct conversation", async () => {
    const { slack, ada, events, view } = await openHome();
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.draw });
    const form = await slack.until(() => slack.view(ada), "the form");
    await ada.submitView(form, { prompt: { value: { value: "a cat" } } });
    expect(events).toMatchObject([{ name: "imagine", reply: { channelId: ada.direct().id } }]);
  });
});

describe("the messages tab", () => {
  test("the messages tab suggests prompts", async () => {
    const { slack, ada } = await startInteractions();
    ada.openHome("messages");
    const prompts = await slack.until(() => slack.assistant.prompts(ada.direct()).length > 0);
    expect(prompts).toBe(true);
    expect(slack.assistant.prompts(ada.direct())).toContain("Create an image");
    expect(slack.home(ada)).toBeUndefined();
  });

  test("the messages tab suggests the prompts of the channel next to the tab, or otherwise those of the conversation", async () => {
    const set = new Map<string, string[]>();
    const readPersona = async ({ channelId }: { channelId: string }) => {
      const prompts = set.get(channelId);
      return prompts === undefined ? {} : { prompts };
    };
    const { slack, ada, general, interactions, workspace } = await startInteractions({ readPersona });
    const shown = async (context: object) => {
      const event = { type: "app_home_opened", tab: "messages", user: ada.id, channel: ada.direct().id, context };
      const { afterwards } = await interactions.onEvent(event, { event }, workspace);
      await afterwards?.();
      return slack.assistant.prompts(ada.direct());
    };
    set.set(general.id, ["Who is on call?", "y".repeat(70)]);
    const entities = [
      { type: "slack#/types/canvas_id", value: "F1" },
      { type: "slack#/types/channel_id", value: general.id, team_id: workspace.teamId },
    ];
    expect(await shown({ entities })).toEqual(["Who is on call?", `${"y".repeat(59)}…`]);
    const message = { type: "slack#/types/message_context", value: { channel_id: general.id, message_ts: "1.2" } };
    expect(await shown({ entities: [message] })).toHaveLength(2);
    expect(await shown({})).toContain("Create an image");
    set.set(ada.direct().id, ["Mine"]);
    expect(await shown({})).toEqual(["Mine"]);
  });

  test("the messages tab gets no suggestions if the app is not an agent", async () => {
    const { slack, ada, interactions, workspace } = await startInteractions();
    slack.failNext("assistant.threads.setSuggestedPrompts", { error: "not_agent_app" });
    const event = { type: "app_home_opened", tab: "messages", user: ada.id, channel: ada.direct().id };
    for (let times = 0; times < 2; times++) {
      const { afterwards } = await interactions.onEvent(event, { event }, workspace);
      await afterwards?.();
    }
    const asked = slack.requests.filter(({ method }) => method === "assistant.threads.setSuggestedPrompts");
    expect(asked).toHaveLength(1);
  });
});

test("only a posted answer to an action on the home tab redraws the tab", async () => {
  const drawn: object[] = [];
  const { adapter, setTrouble } = fakePlatform();
  const post = (extra: Record<string, string>) => {
    const address = { platform: "slack", channelId: "D1", extra: { team: "T1", user: "U1", ...extra } };
    const sink = withHome(adapter.sink(address, NO_RIGHT), address, async (home) => void drawn.push(home));
    return sink.post(draft("Done."), "n", signal);
  };
  await post({});
  expect(drawn).toEqual([]);
  await post({ isFromHome: "true" });
  expect(drawn).toEqual([{ teamId: "T1", userId: "U1", channelId: "D1" }]);
  setTrouble(() => ({ kind: "gone" }));
  await expect(post({ isFromHome: "true" })).rejects.toThrow(SinkError);
  expect(drawn).toHaveLength(1);
});
