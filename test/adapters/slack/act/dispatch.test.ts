import { describe, expect, test } from "vitest";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { recordingLog } from "../../../../lab/support/log.ts";
import { startInteractions } from "../interaction-stage.ts";

describe("dispatching a payload from Slack", () => {
  test.each<Body>([
    { command: "/ask" },
    { command: 1, channel_id: "C1" },
    { type: "block_actions" },
    { type: "block_actions", user: { id: "U1" }, container: {}, actions: [], trigger_id: "t" },
    { type: "block_actions", user: { id: "U1" }, container: {}, actions: [{ action_id: "a" }], trigger_id: "t" },
    { type: "view_submission", view: null },
    { type: "view_submission", user: { id: "U1" }, view: { id: "V", callback_id: "other", state: { values: {} } } },
    { type: "view_closed", view: {} },
    { type: "message_action", callback_id: "ask_about" },
    { type: "shortcut", callback_id: "imagine_global" },
    { type: "shortcut", callback_id: "unknown", user: { id: "U1" }, trigger_id: "t" },
    { type: "workflow_step_edit" },
    {},
  ])("the adapter acknowledges an unknown payload and does nothing: %j", async (body) => {
    const { interactions, workspace } = await startInteractions();
    expect(await interactions.onInteraction(body, workspace)).toEqual({ events: [] });
  });

  test("the adapter reads a payload with null instead of absent values", async () => {
    const { interactions, workspace, general } = await startInteractions();
    const press = {
      type: "block_actions",
      user: { id: "U1", name: null, username: "ada", team_id: null },
      channel: { id: general.id },
      container: { message_ts: "100.0", thread_ts: null, channel_id: general.id, is_ephemeral: null },
      message: { ts: "100.0", thread_ts: null, files: null },
      view: null,
      response_url: null,
      actions: [{ action_id: "retry", value: "retry:turn-1", selected_option: null }],
      trigger_id: "t",
    };
    const { events } = await interactions.onInteraction(press, workspace);
    expect(events).toMatchObject([{ kind: "action", action: "retry", turnId: "turn-1" }]);
    const message = { ts: "100.0", user: null, text: null, files: null, blocks: null };
    const shortcut = { type: "message_action", callback_id: "ask_about", user: { id: "U1" }, message };
    const asked = await interactions.onInteraction(
      { ...shortcut, channel: { id: general.id }, response_url: null, trigger_id: "t2" },
      workspace,
    );
    expect(asked.events).toMatchObject([{ kind: "message" }]);
  });

  test("two payloads with the same trigger, or without one, are two actions, and a repeated payload has the same keys", async () => {
    const { interactions, workspace, general } = await startInteractions();
    const user = { id: "U1" };
    const place = { channel_id: general.id, user_id: "U1" };
    const press = (value: string) => ({
      type: "block_actions",
      user,
      channel: { id: general.id },
      message: { ts: "100.0" },
      actions: [{ action_id: "a", value }],
    });
    const payloads = [
      { command: "/help", ...place },
      { command: "/model", text: "x", ...place },
      press("retry:turn-1"),
      press("stop:turn-1"),
    ];
    const read = async (body: Body) => (await interactions.onInteraction(body, workspace)).events.map(({ key }) => key);
    const keys = (await Promise.all(payloads.map((body) => read({ ...body, trigger_id: "t" })))).flat();
    expect(new Set(keys).size).toBe(payloads.length);
    expect((await Promise.all(payloads.map(read))).flat()).toHaveLength(payloads.length);
    expect((await Promise.all(payloads.map((body) => read({ ...body, trigger_id: "t" })))).flat()).toEqual(keys);
  });

  test("the adapter logs an unknown payload without people's words", async () => {
    const { log, lines } = recordingLog();
    const { interactions, workspace } = await startInteractions({ log });
    await interactions.onInteraction({ command: "/ask", text: "a secret" }, workspace);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain("a secret");
  });

  test.each<Body>([
    { type: "app_home_opened" },
    { type: "assistant_thread_started" },
    { type: "assistant_thread_started", assistant_thread: { channel_id: 1 } },
    { type: "app_context_changed" },
    { type: "tokens_revoked" },
    { type: "agent_session_stopped", channel: "C1" },
    {},
  ])("the adapter acknowledges an empty event: %j", async (event) => {
    const { interactions, workspace } = await startInteractions();
    expect(await interactions.onEvent(event, { event }, workspace)).toEqual({ events: [] });
  });
});

describe("the end of an installation", () => {
  async function startTold() {
    const told: unknown[] = [];
    const stage = await startInteractions({
      onUninstalled: async (...what) => void told.push(what),
    });
    return { ...stage, told };
  }

  test("an uninstall counts from the end of the second that Slack names, so it removes an installation made in that second", async () => {
    const { slack, workspace, told } = await startTold();
    slack.revoke("account_inactive", { isTold: true });
    await slack.acknowledged();
    const eventTime = slack.deliveries.find(({ name }) => name === "app_uninstalled")?.payload["event_time"];
    const atMs = Number(eventTime) * 1_000 + 999;
    expect(told).toEqual([
      [workspace.teamId, atMs, "revoked"],
      [workspace.teamId, atMs, "uninstalled"],
    ]);
  });

  test("the adapter reports an uninstall even if it does not know the installation", async () => {
    const { interactions, told } = await startTold();
    await interactions.onEvent({ type: "app_uninstalled" }, { team_id: "T9", event_time: 5 }, undefined);
    await interactions.onEvent({ type: "app_uninstalled" }, { team_id: "T8", event_time: "6" }, undefined);
    expect(told).toEqual([
      ["T9", 5_999, "uninstalled"],
      ["T8", 6_999, "uninstalled"],
    ]);
  });

  test("the adapter does not report revoked user tokens as an uninstall", async () => {
    const { interactions, workspace, told } = await startTold();
    const event = { type: "tokens_revoked", tokens: { oauth: ["U1"], bot: [] } };
    await interactions.onEvent(event, { event, team_id: "T1" }, workspace);
    expect(told).toEqual([]);
  });

  test("Slack delivers an uninstall again if the bot could not store it", async () => {
    const { interactions } = await startInteractions({ onUninstalled: () => Promise.reject(new Error("away")) });
    const telling = interactions.onEvent({ type: "app_uninstalled" }, { team_id: "T9" }, undefined);
    await expect(telling).rejects.toThrow(/away/);
  });
});
