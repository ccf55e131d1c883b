import { describe, expect, test } from "vitest";
import { applyTasks, openTitles, tasksToWire, weighTasks } from "./chunks.ts";
import { createClock } from "./clock.ts";
import { openSlack } from "./control.ts";
import { startSlack } from "./slack.ts";
import { createWebClient, errorOf } from "./web-api.ts";
import type { Json } from "./world.ts";

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
  test("are refused whole when one of them is not as it must be", async () => {
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

  test("take a title and a status in the place of the last, and add all else to it", () => {
    const first = applyTasks(new Map(), [{ ...TASK, details: "one" }]);
    const tasks = applyTasks(first, [{ ...TASK, title: "Looked", status: "complete", details: ", two", output: "é" }]);
    expect(tasks.get("1")).toMatchObject({ title: "Looked", status: "complete", details: "one, two", output: "é" });
    expect([weighTasks(tasks), openTitles(first), openTitles(tasks)]).toEqual([6 + 2 * 8 + 2 * 2, ["Looking"], []]);
  });

  test("are a plan in the message, which an update takes away", async () => {
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

  test("count with the text of the message", async () => {
    const { append } = await startStream(startSlack({ limits: { streamBytes: 9 } }));
    expect(await append({ ...TASK, title: "123456789", status: "complete" })).toBe("msg_too_long");
    expect(await append({ ...TASK, title: "12345678", status: "complete" })).toBe("ok");
    expect(await append({ type: "markdown_text", text: "b" })).toBe("msg_too_long");
    expect(await append({ ...TASK, title: "12345678", status: "error" })).toBe("ok");
  });

  test("show in one of two ways, and in no other", async () => {
    const { slack, place } = await startStream();
    const start = (task_display_mode: string) => errorOf(slack, "chat.startStream", { ...place, task_display_mode });
    expect([await start("plan"), await start("timeline"), await start("dense")]).toEqual([
      "ok",
      "ok",
      "invalid_arguments",
    ]);
  });

  test("are no use where they are not known", async () => {
    const { slack, append, stop } = await startStream();
    slack.setUnknown("chunks");
    expect(await append(TASK)).toBe("invalid_chunks");
    slack.setUnknown();
    expect(await append({ ...TASK, status: "complete" })).toBe("ok");
    expect(await stop()).toBe("ok");
  });
});

describe("a task that goes on when its stream has ended", () => {
  async function startOpen() {
    const slack = await openSlack();
    return startStream(Promise.resolve(slack));
  }

  test.each<[string, Json]>([
    ["text", { markdown_text: "b" }],
    ["another task", { chunks: [{ ...TASK, id: "2", status: "complete" }] }],
    ["blocks", { blocks: [{ type: "divider" }] }],
  ])("is a violation at once when the stream is ended with %s", async (_, args) => {
    const { slack, append, stop } = await startOpen();
    await append(TASK);
    expect(await stop(args)).toBe("ok");
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["open-task"]);
    await slack.close();
    expect(() => slack.assertClean()).toThrow(/1 times:\n- open-task: .*"Looking" goes on/);
  });

  test("is one when the message is not written anew after a stop without a word", async () => {
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

  test("is none when it was written anew", async () => {
    const { slack, append, stop, update } = await startOpen();
    await append(TASK);
    await stop();
    await update();
    await slack.close();
    slack.assertClean();
  });
});
