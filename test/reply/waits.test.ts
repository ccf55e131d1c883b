import { setImmediate as soon } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Button, Draft, Step } from "../../src/port/sink.ts";
import { describeTime } from "../../src/port/steps.ts";
import { createProgress, type ProduceText, type ReplyOptions, writeReply } from "../../src/reply/reply.ts";
import { createSteps } from "../../src/reply/steps.ts";

import { events, setUp } from "./reply-stage.ts";

/** Longer than the intervals at which a reply reports a wait or a running step. */
const A_WHILE_MS = 10_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const pass = () => vi.advanceTimersByTime(A_WHILE_MS);

describe("a long wait", () => {
  const held = () => Promise.withResolvers<void>();

  test("a reply shows a wait with Stop in the message that becomes the answer", async () => {
    const { options, channel, until, calls, texts } = setUp({ traits: { waits: "soon" } });
    const [told, hold] = [held(), held()];
    const visible: string[] = [];
    const writing = writeReply(events(hold.promise, "Hello"), {
      ...options,
      onWait: () => told.resolve(),
      onVisible: () => void visible.push(channel[0]?.draft.markdown ?? ""),
    });
    pass();
    await told.promise;
    await until(() => texts()[0] === "_Still waiting for the model …_");
    expect(channel[0]?.draft).toMatchObject({
      markdown: "_Still waiting for the model …_",
      buttons: [{ action: "stop", turnId: "turn" }],
    });
    hold.resolve();
    await writing;
    expect(channel.map(({ draft }) => draft.markdown)).toEqual(["Hello"]);
    expect(calls.filter((name) => name === "post")).toHaveLength(1);
    expect(visible).toEqual(["Hello"]);
  });

  test("Stop appears long before the notice of a long wait", async () => {
    const { options, channel, until, texts } = setUp({ traits: { waits: "soon" } });
    const hold = held();
    const writing = writeReply(events(hold.promise, "Hello"), options);
    vi.advanceTimersByTime(1_000);
    await until(() => channel.length === 1);
    expect(channel[0]?.draft).toMatchObject({
      markdown: "_Waiting for the model …_",
      buttons: [{ action: "stop", turnId: "turn" }],
    });
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["Hello"]);
  });

  test("a reply posts no message for Stop while the platform has its own Stop, however late the platform refuses its Stop", async () => {
    const { options, channel, until } = setUp();
    const [hold, asked] = [held(), held()];
    let isOffered = true;
    let count = 0;
    const sink = {
      ...options.sink,
      traits: {
        get waits() {
          count += 1;
          if (count === 3) asked.resolve();
          return isOffered ? ("late" as const) : ("soon" as const);
        },
      },
    };
    const writing = writeReply(events(hold.promise, "Hello"), { ...options, sink });
    vi.advanceTimersByTime(3_000);
    await asked.promise;
    expect(channel).toEqual([]);
    // The platform refuses the button late.
    isOffered = false;
    vi.advanceTimersByTime(1_000);
    await until(() => channel.length === 1);
    hold.resolve();
    await writing;
  });

  test("a reply uses the fallback to write a wait, because the notice with Stop comes before growing text", async () => {
    const { options, texts, until } = setUp({ traits: { waits: "soon" } });
    const hold = held();
    const fallback = { isActive: false, activate: () => void (fallback.isActive = true) };
    const sink = { ...options.sink, fallback };
    const writing = writeReply(events(hold.promise, "Hello"), { ...options, sink });
    vi.advanceTimersByTime(1_000);
    await until(() => texts()[0] === "_Waiting for the model …_");
    expect(fallback.isActive).toBe(true);
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["Hello"]);
  });

  test("a wait ends in the note of a failure, in the same message", async () => {
    const closing = { note: "_It failed._", buttons: [] };
    const { options, texts, until } = setUp({ traits: { waits: "soon" }, closing });
    const hold = held();
    const writing = writeReply(events(hold.promise, new Error("down")), options);
    pass();
    await until(() => texts().length === 1);
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["_It failed._"]);
  });

  test("a reply shows a wait only as progress if the platform shows Stop with progress, or if an answer is visible", async () => {
    for (const [traits, posted] of [
      [{}, []],
      [{ waits: "soon" }, ["test:before"]],
    ] as const) {
      const { options, calls } = setUp({ posted: [...posted], closing: null, traits });
      const [told, hold] = [Promise.withResolvers<string>(), held()];
      const writing = writeReply(events(hold.promise), { ...options, onWait: told.resolve });
      pass();
      expect(await told.promise).toBe("waiting for the model");
      hold.resolve();
      await writing;
      expect(calls).toEqual([]);
    }
  });

  test("a reply shows a wait again whenever its words change", async () => {
    const { options, texts, until } = setUp({ traits: { waits: "soon" } });
    const hold = held();
    const words = ["waiting", "waiting", "thinking, 10 s", "thinking, 20 s"];
    const told: string[] = [];
    const writing = writeReply(events(hold.promise, "Hello"), {
      ...options,
      describeWait: () => words.shift() ?? "thinking, 30 s",
      onWait: (said) => void told.push(said),
    });
    for (let time = 0; time < 4; time++) pass();
    await until(() => texts()[0] === "_Still thinking, 30 s …_");
    expect(told).toEqual(["waiting", "thinking, 10 s", "thinking, 20 s", "thinking, 30 s"]);
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["Hello"]);
  });

  test("a reply shows no wait once there is text", async () => {
    const { options, texts } = setUp();
    const waits: string[] = [];
    const run: ProduceText = async (onText) => {
      onText("Hello");
      pass();
      await soon();
      return "stop";
    };
    await writeReply(run, { ...options, onWait: (words) => void waits.push(words) });
    expect([waits, texts()]).toEqual([[], ["Hello"]]);
  });
});

describe("the steps of a reply in progress", () => {
  const running: Step = { id: "1.0", title: "looking", state: "running" };

  function setUpSteps(hasSteps: boolean, now?: () => number) {
    const { options, ...rest } = setUp();
    const steps = createSteps(now);
    const shown: string[] = [];
    const note = ({ markdown, steps = [] }: Draft) =>
      shown.push([markdown, ...steps.map(({ state }) => state), ...steps.map(describeTime).filter(Boolean)].join(" "));
    const { sink, scheduler } = options;
    let writes = 0;
    const counting: ReplyOptions["scheduler"] = {
      ...scheduler,
      join: (key, paced) => scheduler.join(key, { ...paced, write: () => ((writes += 1), paced.write()) }),
    };
    const noting: ReplyOptions["sink"] = {
      ...sink,
      traits: { steps: hasSteps },
      post: (draft, nonce, signal) => (note(draft), sink.post(draft, nonce, signal)),
      edit: (id, draft, signal) => (note(draft), sink.edit(id, draft, signal)),
    };
    return {
      ...rest,
      steps,
      shown,
      writes: () => writes,
      options: { ...options, sink: noting, steps, scheduler: counting },
    };
  }

  test("steps are shown with the text, even if it does not grow, and end with it", async () => {
    const { options, steps, shown, until } = setUpSteps(true);
    const [ended, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = writeReply(events("Text", ended.promise, " grows", over.promise, new Error("cut")), options);
    await until(() => shown.includes("Text"));
    steps.note(running);
    await until(() => shown.includes("Text running"));
    steps.note({ ...running, state: "done" });
    steps.note({ ...running, id: "1.1" });
    ended.resolve();
    await until(() => shown.includes("Text grows done running"));
    over.resolve();
    await writing;
    expect(shown.at(-1)).toBe("Text grows done failed");
  });

  test("steps show how long they have run, and finally how long they took", async () => {
    let time = 0;
    const { options, steps, shown, until } = setUpSteps(true, () => time);
    const over = Promise.withResolvers<void>();
    const writing = writeReply(events("Text", over.promise), options);
    await until(() => shown.includes("Text"));
    steps.note(running);
    time = 5_400;
    pass();
    await until(() => shown.includes("Text running 5 s"));
    time = 12_000;
    pass();
    await until(() => shown.includes("Text running 12 s"));
    time = 12_300;
    steps.note({ ...running, state: "done" });
    over.resolve();
    await writing;
    expect(shown.at(-1)).toBe("Text done 12.3 s");
  });

  test("a reply describes steps in words if it cannot show them", async () => {
    let time = 0;
    const { options, steps, shown, until } = setUpSteps(false, () => time);
    const over = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    const onWait = (words: string) => words === "looking, 12 s" && told.resolve();
    const writing = writeReply(events("Text", over.promise), { ...options, onWait });
    await until(() => shown.includes("Text"));
    steps.note(running);
    time = 12_000;
    pass();
    await told.promise;
    steps.note({ ...running, state: "done" });
    over.resolve();
    await writing;
    expect(shown).toEqual(["Text", "Text done 12.0 s"]);
  });

  test("steps start no message, because it would have no text", async () => {
    const { options, steps, writes, texts } = setUpSteps(true);
    const gate = Promise.withResolvers<void>();
    const writing = writeReply(events(gate.promise, "Text"), options);
    steps.note(running);
    for (let turn = 0; turn < 5; turn++) await soon();
    expect(writes()).toBe(0);
    gate.resolve();
    await writing;
    expect(texts()).toEqual(["Text"]);
  });

  test("steps cost no call if they are not shown", async () => {
    const { options, steps, shown, writes, until } = setUpSteps(false);
    const gate = Promise.withResolvers<void>();
    const writing = writeReply(events("Text", gate.promise), options);
    await until(() => shown.includes("Text"));
    steps.note(running);
    for (let turn = 0; turn < 5; turn++) await soon();
    expect(writes()).toBe(1);
    gate.resolve();
    await writing;
    expect(shown).toEqual(["Text", "Text failed"]);
  });
});

describe("createProgress", () => {
  test("progress passes on the button that stops the work", async () => {
    const stops: unknown[] = [];
    const { sink } = fakePlatform();
    const seeing = { ...sink, progress: async (_: string, __: AbortSignal, stop?: Button) => void stops.push(stop) };
    const stop: Button = { action: "stop", turnId: "turn-1", label: "Stop" };
    const shown = createProgress(seeing, NO_RIGHT, stop);
    shown.show("thinking");
    await shown.clear();
    expect(stops).toContainEqual(stop);
  });

  test("progress leaves nothing behind, however slowly the platform shows it", async () => {
    const { sink, progress } = fakePlatform();
    const slow = Promise.withResolvers<void>();
    const held = { ...sink, progress: async (text: string) => void (await slow.promise, progress.push(text)) };
    const shown = createProgress(held, NO_RIGHT);
    shown.show("thinking");
    shown.show("looking up the time");
    const cleared = shown.clear();
    slow.resolve();
    await cleared;
    expect(progress.at(-1)).toBe("");
    expect(progress).not.toContain("looking up the time");
  });

  test("progress does not wait for a platform that hangs", async () => {
    const { sink } = fakePlatform();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const shown = createProgress({ ...sink, progress: () => new Promise(() => {}) }, NO_RIGHT);
    shown.show("thinking");
    const cleared = shown.clear();
    await vi.advanceTimersByTimeAsync(A_WHILE_MS);
    await expect(cleared).resolves.toBeUndefined();
  });

  test("progress is best effort: a platform can refuse it", async () => {
    const { sink } = fakePlatform();
    const shown = createProgress({ ...sink, progress: () => Promise.reject(new Error("no")) }, NO_RIGHT);
    shown.show("thinking");
    await expect(shown.clear()).resolves.toBeUndefined();
  });
});

test("a reply without text shows what it waits for, and finally removes its message if there is no closing note", async () => {
  const { options, texts, channel, until } = setUp();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { describeWait: _, ...silent } = options;
  const run: ProduceText = async (_, tell) => {
    tell("Drawing …");
    await first.promise;
    tell("Drawing … 1 of 2 done");
    await second.promise;
    return "stop";
  };
  const writing = writeReply(run, { ...silent, stopId: "turn.0" });
  await until(() => texts()[0] === "Drawing …");
  expect(channel[0]?.draft.buttons).toEqual([{ action: "stop", turnId: "turn.0", label: "Stop" }]);
  first.resolve();
  await until(() => texts()[0] === "Drawing … 1 of 2 done");
  second.resolve();
  await writing;
  expect(channel).toEqual([]);
});
