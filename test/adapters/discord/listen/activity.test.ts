import { describe, expect, test } from "vitest";
import { createActivity } from "../../../../adapters/discord/listen/activity.ts";
import { toCustomId } from "../../../../adapters/discord/write/message-body.ts";

function start() {
  let nowMs = 0;
  return { activity: createActivity(() => nowMs), pass: (ms: number) => void (nowMs += ms) };
}

function shown(id: string, ...customIds: string[]) {
  const components = [{ type: 1, components: customIds.map((custom_id) => ({ type: 2, custom_id })) }];
  return { id, channel_id: "c", components: components as never };
}

const stop = (root: string) => toCustomId({ action: "stop", turnId: "t", root });

describe("activity", () => {
  test("a channel is busy from the question until the answer has no Stop button any more", () => {
    const { activity } = start();
    expect(activity.isBusy("c")).toBe(false);
    activity.begin("c", "q");
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("a", stop("q")));
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("a"));
    expect(activity.isBusy("c")).toBe(false);
    expect(activity.isBusy("d")).toBe(false);
  });

  test("an answer of another process makes a channel busy", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("a", toCustomId({ action: "retry", turnId: "t", root: "q" })));
    expect(activity.isBusy("c")).toBe(false);
  });

  test("a channel is busy as long as one of several answers grows", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    activity.see(shown("b", stop("r")));
    activity.see(shown("a"));
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("b"));
    expect(activity.isBusy("c")).toBe(false);
  });

  test("a channel is quiet when the growing message is deleted, and not when another one is", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    activity.forget({ id: "b", channel_id: "c" });
    expect(activity.isBusy("c")).toBe(true);
    activity.forget({ id: "a", channel_id: "c" });
    expect(activity.isBusy("c")).toBe(false);
  });

  test("an answer that does not grow for two minutes is over", () => {
    const { activity, pass } = start();
    activity.begin("c", "q");
    pass(120_000);
    expect(activity.isBusy("c")).toBe(false);
  });
});
