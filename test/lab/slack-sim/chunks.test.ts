import { describe, expect, test } from "vitest";
import { applyTasks, openTitles, tasksToWire, weighTasks } from "../../../lab/slack-sim/chunks.ts";
import { createClock } from "../../../lab/slack-sim/clock.ts";
import { openSlack } from "../../../lab/slack-sim/control.ts";
import { createWebClient, errorOf } from "../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startSlack } from "../../support/slack.ts";

const TASK = { type: "task_update", id: "1", title: "Looking", status: "in_progress" };

async function startStream(slack = startSlack({ clock: createClock({ isFrozen: true }) })) {
  const simulator = await slack;
  const ada = simulator.user({ name: "Ada" });
  const general = simulator.channel({ name: "general", members: [ada] });
  const question = ada.say(general, "tell me");
  const recipient = { recipient_team_id: simulator.workspace.id, recipient_user_id: ada.id };
  const place = { channel: general.id, thread_ts: question.ts, ...recipient };
  const { ts = "" } = await createWebClient(simulator).chat.startStream({ ...place, markdown_text: "a" });
  const stream = { channel: general.id, ts };
  const call = (method: string, args: Json) => errorOf(simulator, method, { ...stream, ...args });
  return {
    slack: simulator,
    place,
    answer: () => simulator.answers(general, question)[0],
    append: (...chunks: Json[]) => call("chat.appendStream", { chunks }),
    stop: (args: Json = {}) => call("chat.stopStream", args),
    update: () => call("chat.update", { text: "whole" }),
  };
}

describe("chunks of a stream", () => {
  test("a call with one malformed chunk is refused completely", async () => {
    const { append, answer } = await startStream();
    const wrong: Json[] = [
      { type: "song" },
      { type: "markdown_text" },
      { type: "markdown_text", text: "" },
      { type: "plan_update" },
      { type: "blocks", blocks: "none" },
      { ...TASK, id: undefined },
      { ...TASK, id: "" },
      { ...TASK, title: undefined },
      { ...TASK, title: "x".repeat(257) },
      { ...TASK, status: "soon" },
      { ...TASK, status: undefined },
      { ...TASK, details: 1 },
      { ...TASK, sources: [{ type: "url", url: "https://a.example" }] },
    ];
    for (const chunk of wrong) expect([chunk, await append(TASK, chunk)]).toEqual([chunk, "invalid_chunks"]);
    expect(answer()?.stream?.tasks.size).toBe(0);
    expect(await append({ ...TASK, status: "complete", sources: [{ type: "url", url: "u", text: "t" }] })).toBe("ok");
  });

  test("a chunk replaces a task's title and status, and appends to its other fields", () => {
    const first = applyTasks(new Map(), [{ ...TASK, details: "one" }]);
    const tasks = applyTasks(first, [{ ...TASK, title: "Looked", status: "complete", details: ", two", output: "é" }]);
    expect(tasks.get("1")).toMatchObject({ title: "Looked", status: "complete", details: "one, two", output: "é" });
    expect([weighTasks(tasks), openTitles(first), openTitles(tasks)]).toEqual([6 + 2 * 8 + 2 * 2, ["Looking"], []]);
  });

  test("chunks show as a plan in the message, which an update removes", async () => {
    const { append, stop, update, answer } = await startStream();
    await append({ ...TASK, status: "complete" });
    await stop();
    const { stream } = answer() ?? {};
    expect(stream && tasksToWire(stream)).toEqual([
      {
        type: "plan",
        title: "Thinking",
        tasks: [{ type: "task_card", task_id: "1", title: "Looking", status: "complete" }],
      },
    ]);
    expect(await update()).toBe("ok");
    expect(stream && tasksToWire(stream)).toEqual([]);
  });

  test("chunks count with the text of the message", async () => {
    const { append } = await startStream(startSlack({ limits: { streamBytes: 9 } }));
    expect(await append({ ...TASK, title: "123456789", status: "complete" })).toBe("msg_too_long");
    expect(await append({ ...TASK, title: "12345678", status: "complete" })).toBe("ok");
    expect(await append({ type: "markdown_text", text: "b" })).toBe("msg_too_long");
    expect(await append({ ...TASK, title: "12345678", status: "error" })).toBe("ok");
  });

  test("a stream shows its tasks in one of two modes, and accepts no other mode", async () => {
    const { slack, place } = await startStream();
    const start = (task_display_mode: string) => errorOf(slack, "chat.startStream", { ...place, task_display_mode });
    expect([await start("plan"), await start("timeline"), await start("dense")]).toEqual([
      "ok",
      "ok",
      "invalid_arguments",
    ]);
  });

  test("the simulator refuses chunks in a workspace that does not support them", async () => {
    const { slack, append, stop } = await startStream();
    slack.setUnknown("chunks");
    expect(await append(TASK)).toBe("invalid_chunks");
    slack.setUnknown();
    expect(await append({ ...TASK, status: "complete" })).toBe("ok");
    expect(await stop()).toBe("ok");
  });
});

describe("a task that still runs when its stream ends", () => {
  async function startOpen() {
    const slack = await openSlack();
    return startStream(Promise.resolve(slack));
  }

  test.each<[string, Json]>([
    ["text", { markdown_text: "b" }],
    ["another task", { chunks: [{ ...TASK, id: "2", status: "complete" }] }],
    ["blocks", { blocks: [{ type: "divider" }] }],
  ])("a running task is a violation as soon as its stream ends with %s", async (_, args) => {
    const { slack, append, stop } = await startOpen();
    await append(TASK);
    expect(await stop(args)).toBe("ok");
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["open-task"]);
    await slack.close();
    expect(() => slack.assertClean()).toThrow(/1 times:\n- open-task: .*"Looking" was still running/);
  });

  test("a running task is a violation if the message is not rewritten after a stop without content", async () => {
    const { slack, append, stop, update } = await startOpen();
    await append({ ...TASK, status: "pending" });
    await stop();
    expect(slack.violations).toEqual([]);
    expect(() => slack.assertClean({ allow: ["ping"] })).toThrow(/open-task: .*left with open tasks/);
    slack.allow("open-task");
    await update();
    await slack.close();
    slack.assertClean();
  });

  test("a running task is not a violation if an update rewrites the message", async () => {
    const { slack, append, stop, update } = await startOpen();
    await append(TASK);
    await stop();
    await update();
    await slack.close();
    slack.assertClean();
  });
});
