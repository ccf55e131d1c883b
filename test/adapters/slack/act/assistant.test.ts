import { describe, expect, test } from "vitest";
import { startInteractions } from "../interaction-stage.ts";
import { personOf } from "../workspace.ts";

describe("Slack's own Stop", () => {
  async function startStreams() {
    const stage = await startInteractions();
    const { ada, general, call, workspace, turnsByMessage } = stage;
    const question = ada.say(general, "hi");
    let count = 0;
    async function grow(turnId: string | undefined): Promise<void> {
      const stream = {
        channel: general.id,
        thread_ts: question.ts,
        markdown_text: `growing ${count++}`,
        recipient_user_id: ada.id,
        recipient_team_id: workspace.teamId,
      };
      const { ts } = await call("chat.startStream", stream);
      if (turnId !== undefined) turnsByMessage.set(`slack:${workspace.teamId}:${general.id}:${String(ts)}`, turnId);
    }
    return { ...stage, question, grow };
  }

  test("Slack's Stop stops the turns that write the named messages, each once", async () => {
    const { slack, bob, general, question, events, workspace, grow } = await startStreams();
    await grow("turn-1");
    await grow("turn-1");
    await grow("turn-2");
    bob.stop(question);
    await slack.until(() => events.length > 0, "the stop");
    expect(events).toMatchObject([
      {
        kind: "action",
        action: "stop",
        turnId: "turn-1",
        author: { id: personOf(slack, bob) },
        conversationId: `slack:${workspace.teamId}:${general.id}:${question.ts}`,
      },
      { kind: "action", action: "stop", turnId: "turn-2" },
    ]);
    expect(new Set(events.map(({ key }) => key)).size).toBe(2);
  });

  test("Slack's Stop stops the answer in the thread if its turn has not stored the message yet", async () => {
    const { slack, ada, workspace, general, question, events, grow } = await startStreams();
    await grow(undefined);
    ada.stop(question);
    await slack.until(() => events.length > 0, "the stop");
    expect(events).toMatchObject([
      { kind: "command", name: "stop", conversationId: `slack:${workspace.teamId}:${general.id}:${question.ts}` },
    ]);
  });

  test("a repeated Stop event has the same keys", async () => {
    const { slack, ada, question, events, grow } = await startStreams();
    await grow("turn-1");
    ada.stop(question);
    const told = await slack.until(() => slack.deliveries.find(({ name }) => name === "agent_session_stopped"));
    await slack.until(() => events.length === 1);
    await slack.redeliver(told);
    expect(new Set(events.map(({ key }) => key)).size).toBe(1);
  });
});

test("the bot remembers the channel that a person looks at, per thread in the older assistant and otherwise per person", async () => {
  const noted: unknown[] = [];
  const looking = { note: async (...given: unknown[]) => void noted.push(given) };
  const { interactions, workspace } = await startInteractions({ looking });
  const { teamId } = workspace;
  const context = { channel_id: "C1", team_id: teamId, enterprise_id: null };
  const assistant_thread = { user_id: "U1", context, channel_id: "D1", thread_ts: "1.0" };
  const older = { type: "assistant_thread_context_changed", assistant_thread, event_ts: "2.0" };
  const entities = [{ type: "slack#/types/channel_id", value: "C2", team_id: teamId }];
  const newer = { type: "app_context_changed", user: "U1", channel: "D1", context: { entities }, event_ts: "3.0" };
  const nothing = { ...newer, context: {} };
  const bare = { type: "app_context_changed", context: { entities } };
  for (const event of [older, newer, nothing, bare]) {
    expect((await interactions.onEvent(event, { event }, workspace)).events).toEqual([]);
  }
  const ada = { platform: "slack", authorId: `${teamId}/U1` };
  expect(noted).toEqual([
    [{ ...ada, threadId: "1.0" }, "C1"],
    [ada, "C2"],
    [ada, undefined],
  ]);
});

test("the adapter also suggests prompts in a thread of the older assistant", async () => {
  const { slack, ada, interactions, workspace } = await startInteractions();
  const root = ada.dm("hello");
  const event = {
    type: "assistant_thread_started",
    assistant_thread: { user_id: ada.id, channel_id: root.channel.id, thread_ts: root.ts },
  };
  const { afterwards } = await interactions.onEvent(event, { event }, workspace);
  await afterwards?.();
  expect(slack.assistant.prompts(root.channel)).not.toEqual([]);
});
