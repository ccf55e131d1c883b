import { describe, expect, test } from "vitest";
import { postMessage } from "../../../lab/slack-sim/web-api.ts";
import { startBolt } from "../../support/bolt-app.ts";
import { startGeneral } from "../../support/slack.ts";

const MODAL = {
  type: "modal" as const,
  callback_id: "imagine_form",
  title: { type: "plain_text" as const, text: "Imagine" },
  submit: { type: "plain_text" as const, text: "Draw" },
  notify_on_close: true,
  blocks: [
    {
      type: "input" as const,
      block_id: "prompt",
      label: { type: "plain_text" as const, text: "Prompt" },
      element: { type: "plain_text_input" as const, action_id: "text" },
    },
  ],
};

const FEEDBACK = {
  type: "context_actions" as const,
  elements: [
    {
      type: "feedback_buttons" as const,
      action_id: "feedback",
      positive_button: { text: { type: "plain_text" as const, text: "Good" }, value: "good" },
      negative_button: { text: { type: "plain_text" as const, text: "Bad" }, value: "bad" },
    },
  ],
};

const BUTTON = {
  type: "actions" as const,
  block_id: "controls",
  elements: [
    {
      type: "button" as const,
      action_id: "stop",
      value: "turn-1",
      text: { type: "plain_text" as const, text: "Stop" },
    },
  ],
};

/** A form that the app opens for a command. `handle` adds what the app does with it. */
async function openForm(handle: Parameters<typeof startBolt>[1]) {
  const { slack, ada, general } = await startGeneral();
  await startBolt(slack, (app) => {
    app.command("/imagine", async ({ ack, client, command }) => {
      await ack();
      await client.views.open({ trigger_id: command.trigger_id, view: MODAL });
    });
    handle(app);
  });
  expect(await ada.command("/imagine", "", general)).toMatchObject({ isAcknowledged: true });
  return { slack, ada, view: await slack.until(() => slack.view(ada), "the form") };
}

describe("interactions", () => {
  test("a command opens a form, which the person corrects before the app accepts it", async () => {
    const prompts: unknown[] = [];
    const { slack, ada, view } = await openForm((app) => {
      app.view("imagine_form", async ({ ack, view }) => {
        const prompt = view.state.values["prompt"]?.["text"]?.value;
        prompts.push(prompt);
        if (prompt === "") await ack({ response_action: "errors", errors: { prompt: "Say something." } });
        else await ack();
      });
    });
    const fill = (value: string) => ada.submitView(view, { prompt: { text: { type: "plain_text_input", value } } });
    expect((await fill("")).response).toMatchObject({ response_action: "errors" });
    expect(view.isOpen).toBe(true);
    await fill("a cat");
    expect(prompts).toEqual(["", "a cat"]);
    expect(slack.view(ada)).toBeUndefined();
  });

  test("a button names its message, and its answer replaces the message", async () => {
    const { slack, ada, general } = await startGeneral();
    const app = await startBolt(slack, (app) => {
      app.action("stop", async ({ ack, respond, body, action }) => {
        await ack();
        const value = "value" in action ? action.value : "";
        const thread = "message" in body ? (body.message?.thread_ts as string) : "";
        await respond({ replace_original: true, text: `stopped ${value} in ${thread}` });
      });
    });
    const question = ada.say(general, "hi");
    await postMessage(app.client, {
      channel: general.id,
      thread_ts: question.ts,
      text: "growing",
      blocks: [BUTTON],
    });
    const [answer] = slack.answers(general, question);
    if (answer === undefined) throw new Error("no answer");
    expect(await ada.press(answer, "stop")).toMatchObject({ isAcknowledged: true });
    await slack.until(() => slack.texts(general)[0] === `stopped turn-1 in ${question.ts}`, "the answer of the button");
    expect(() => ada.press(answer, "stop")).toThrow(/no button with the action_id "stop"/);
  });

  test("the value of feedback buttons shows which one the person pressed", async () => {
    const { slack, ada, general } = await startGeneral();
    const judgements: unknown[] = [];
    const app = await startBolt(slack, (app) => {
      app.action("feedback", async ({ ack, action }) => {
        await ack();
        judgements.push([action.type, "value" in action && action.value]);
      });
    });
    await postMessage(app.client, { channel: general.id, text: "answer", blocks: [FEEDBACK] });
    const [answer] = slack.answers(general);
    if (answer === undefined) throw new Error("no answer");
    await ada.judge(answer, "negative_button");
    await ada.judge(answer, "positive_button");
    expect(judgements).toEqual([
      ["feedback_buttons", "bad"],
      ["feedback_buttons", "good"],
    ]);
    answer.content.blocks = [BUTTON];
    expect(() => ada.judge(answer, "positive_button")).toThrow(/no buttons for feedback/);
  });

  test("the answer to a button of an ephemeral message replaces or removes it", async () => {
    const { slack, ada, general } = await startGeneral();
    await startBolt(slack, (app) => {
      app.command("/imagine", async ({ ack }) => ack({ text: "a cat", blocks: [BUTTON] }));
      app.action("stop", async ({ ack, respond, body }) => {
        await ack();
        const isEphemeral = "container" in body && body.container["is_ephemeral"] === true && !body.message;
        await respond({ replace_original: true, text: `is ephemeral: ${isEphemeral}` });
      });
    });
    await ada.command("/imagine", "", general);
    const [shown] = slack.ephemerals(general, ada.id);
    if (shown === undefined) throw new Error("nothing is shown");
    await ada.press(shown, "stop");
    await slack.until(() => slack.ephemerals(general, ada.id)[0] !== shown, "the answer of the button");
    expect(slack.ephemerals(general, ada.id).map(({ shown }) => shown)).toEqual(["is ephemeral: true"]);
  });

  test("a message shortcut contains the message, its thread and its files", async () => {
    const { slack, ada, general } = await startGeneral();
    const heard: unknown[] = [];
    await startBolt(slack, (app) => {
      app.shortcut({ callback_id: "ask", type: "message_action" }, async ({ ack, shortcut }) => {
        await ack();
        heard.push([shortcut.message.ts, shortcut.message["thread_ts"], shortcut.message["files"]]);
      });
      app.shortcut({ callback_id: "ask", type: "shortcut" }, async ({ ack }) => {
        await ack();
        heard.push("global");
      });
    });
    const root = ada.say(general, "root");
    const message = ada.upload(general, [{ name: "cat.png", bytes: Buffer.from("x") }], "look", { thread: root });
    await ada.shortcut("ask", message);
    await ada.shortcut("ask");
    expect(heard).toEqual([[message.ts, root.ts, [expect.objectContaining({ name: "cat.png" })]], "global"]);
  });

  test("closing a form sends an event if the app requests it", async () => {
    const closed: string[] = [];
    const { slack, ada, view } = await openForm((app) => {
      app.view({ callback_id: "imagine_form", type: "view_closed" }, async ({ ack, view }) => {
        await ack();
        closed.push(view.id);
      });
    });
    await ada.closeView(view);
    expect(closed).toEqual([view.id]);
    expect(slack.view(ada)).toBeUndefined();
  });

  test("an acknowledgement can replace a form or push another one", async () => {
    const titled = (text: string) => ({ ...MODAL, title: { type: "plain_text" as const, text } });
    let action: "update" | "push" | "clear" = "update";
    const { slack, ada, view } = await openForm((app) => {
      app.view("imagine_form", async ({ ack }) => {
        await (action === "clear"
          ? ack({ response_action: "clear" })
          : ack({ response_action: action, view: titled(action) }));
      });
    });
    await ada.submitView(view, {});
    expect(slack.view(ada)?.body["title"]).toMatchObject({ text: "update" });
    action = "push";
    await ada.submitView(view, {});
    const top = slack.view(ada);
    expect([top?.previousId, top?.body["title"]]).toMatchObject([view.id, { text: "push" }]);
    action = "clear";
    await ada.submitView(view, {});
    expect(slack.view(ada)).toBeUndefined();
  });

  test("an app publishes a home tab, whose buttons send events", async () => {
    const { slack, ada } = await startGeneral();
    const pressed: string[] = [];
    await startBolt(slack, (app) => {
      app.event("app_home_opened", async ({ event, client }) => {
        if (event.tab === "home")
          await client.views.publish({ user_id: event.user, view: { type: "home", blocks: [BUTTON] } });
      });
      app.action("stop", async ({ ack, body }) => {
        await ack();
        pressed.push("view" in body ? (body.view?.type ?? "") : "");
      });
    });
    ada.openHome();
    const home = await slack.until(() => slack.home(ada), "the home");
    await ada.pressInView(home, { ...BUTTON.elements[0], block_id: "controls" });
    expect(pressed).toEqual(["home"]);
  });
});
