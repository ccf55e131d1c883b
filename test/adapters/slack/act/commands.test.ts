import { describe, expect, test } from "vitest";
import { readCommand } from "../../../../adapters/slack/act/commands.ts";
import { startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

const KNOWN = new Set(["ask", "imagine", "model", "help"]);

describe("reading a command's name", () => {
  test.each([
    ["/model", " sandbox-text ", { name: "model", text: "sandbox-text" }],
    ["/Model", "", { name: "model", text: "" }],
    ["/palaver-model", "a b", { name: "model", text: "a b" }],
    ["/palaver", "model a b", { name: "model", text: "a b" }],
    ["/palaver", "/imagine a cat\nand a dog", { name: "imagine", text: "a cat\nand a dog" }],
    ["/palaver", "why is the sky blue?", { name: "ask", text: "why is the sky blue?" }],
    ["/palaver", "  ", { name: "help", text: "" }],
  ])("the adapter finds the command in %s %s", (command, text, said) => {
    expect(readCommand(command, text, KNOWN)).toEqual(said);
  });
});

test("a command applies to its channel, and only its author sees the answer", async () => {
  const { ada, general, events, slack } = await startInteractions();
  for (const _ of [1, 2])
    expect(await ada.command("/model", "sandbox-text", general)).toMatchObject({ isAcknowledged: true });
  const [event] = events;
  expect(event).toMatchObject({
    kind: "command",
    name: "model",
    text: "sandbox-text",
    conversationId: `slack:${slack.workspace.id}:${general.id}`,
    author: { id: personOf(slack, ada), name: "Ada" },
    reply: {
      platform: "slack",
      channelId: general.id,
      visibleTo: personOf(slack, ada),
      extra: { team: slack.workspace.id, user: ada.id, responseUrl: expect.stringContaining("/response/") },
    },
  });
  expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  expect(new Set(events.map(({ key }) => key)).size).toBe(2);
});

describe("/ask", () => {
  test("/ask shows a question once, however often Slack delivers it", async () => {
    const { slack, ada, general, interactions, workspace } = await startInteractions();
    const asked = { command: "/ask", text: "why?", channel_id: general.id, user_id: ada.id, trigger_id: "t" };
    const taken = await Promise.all([asked, asked].map((body) => interactions.onInteraction(body, workspace)));
    const again = await interactions.onInteraction(asked, workspace);
    expect([...taken, again].map(({ events: [event] }) => event)).toMatchObject(Array(3).fill(again.events[0]));
    expect(slack.messages(general)).toHaveLength(1);
  });

  test("the adapter acknowledges /ask in time even if Slack is slow and returns no names", async () => {
    const { slack, ada, bob, general, events } = await startInteractions();
    for (const method of ["users.info", "conversations.info"]) slack.slow(method, 5_000);
    for (const method of ["chat.postMessage", "conversations.history"]) slack.slow(method, 800);
    const asked = bob.say(general, `hello <@${ada.id}>`);
    await Promise.all([ada.command("/ask", "why?", general), ada.shortcut("ask_about", asked)]);
    expect(events.map(({ kind }) => kind)).toEqual(["message", "message"]);
    // The workspace itself checks that the acknowledgement arrived in time.
  });

  test("/ask shows the question in the channel and answers in its thread", async () => {
    const { slack, ada, general, events, workspace } = await startInteractions();
    await ada.command("/ask", "why is <!channel> & co *blue*?\nreally?", general);
    const [shown] = slack.answers(general);
    expect(slack.texts(general)).toEqual(["*Ada* asks:\n&gt; why is &lt;!channel&gt; &amp; co *blue*?\n&gt; really?"]);
    const [event] = events;
    expect(event).toMatchObject({
      kind: "message",
      text: "why is <!channel> & co *blue*?\nreally?",
      addressed: "bot",
      conversationId: `slack:${workspace.teamId}:${general.id}:${shown?.ts}`,
      messageId: `slack:${workspace.teamId}:${general.id}:${shown?.ts}`,
      reply: { channelId: general.id, threadId: shown?.ts, extra: { user: ada.id } },
    });
    expect(event?.reply.visibleTo).toBeUndefined();
    expect(slack.pings).toEqual([]);
  });

  test("/ask without a question explains what is missing", async () => {
    const { slack, ada, general, events } = await startInteractions();
    await ada.command("/ask", "", general);
    expect(slack.ephemerals(general, ada.id)[0]?.shown).toMatch(/Write your question/);
    expect(events).toEqual([]);
  });

  test("/ask does not answer a question that it cannot show, and says so", async () => {
    const { slack, ada, general, events } = await startInteractions();
    slack.failNext("chat.postMessage", { error: "restricted_action" });
    await ada.command("/ask", "why?", general);
    expect(slack.ephemerals(general, ada.id)[0]?.shown).toMatch(/Try again/);
    expect(events).toEqual([]);
  });

  test("/ask shows the start of a very long question, and asks the whole question", async () => {
    const { slack, ada, general, events } = await startInteractions();
    const text = `${"&".repeat(1_998)}${"🍵".repeat(2_000)}`;
    await ada.command("/ask", text, general);
    expect(slack.texts(general)[0]?.length).toBeLessThanOrEqual(3_000);
    expect(slack.texts(general)[0]?.isWellFormed()).toBe(true);
    expect(events[0]).toMatchObject({ text });
  });
});

describe("/imagine", () => {
  test("/imagine with words creates an image for everyone in the channel", async () => {
    const { ada, general, events } = await startInteractions();
    await ada.command("/imagine", "a cat --ar 16:9", general);
    expect(events).toMatchObject([{ kind: "command", name: "imagine", text: "a cat --ar 16:9" }]);
    expect(events[0]?.reply).toMatchObject({ channelId: general.id });
    expect(events[0]?.reply.visibleTo).toBeUndefined();
  });

  test.each(["/ask", "/imagine"])("%s explains how to invite the bot to a channel that it is not in", async (name) => {
    const { slack, ada, bob, elsewhere, events } = await startInteractions();
    const secret = slack.channel({ name: "secret", kind: "private", members: [bob], hasApp: false });
    await ada.command(name, "a cat", elsewhere);
    await bob.command(name, "a cat", secret);
    for (const channel of [elsewhere, secret])
      expect(slack.ephemerals(channel)[0]?.shown).toMatch(/not in this channel.*\/invite/);
    expect(events).toEqual([]);
  });

  test("/imagine creates an image in a direct conversation, and if it is unknown whether the bot is in the channel", async () => {
    const { slack, ada, general, events } = await startInteractions();
    await ada.command("/imagine", "a cat", ada.direct());
    slack.failNext("conversations.history", { error: "missing_scope" });
    await ada.command("/imagine", "a cat", general);
    expect(events).toHaveLength(2);
  });

  test("the core answers /imagine without words if images are off", async () => {
    const { ada, general, events } = await startInteractions({ imagine: undefined });
    await ada.command("/imagine", "", general);
    expect(events).toMatchObject([{ name: "imagine", text: "" }]);
  });
});
