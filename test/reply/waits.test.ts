import { setImmediate as soon } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Button, Draft, Step } from "../../src/port/sink.ts";
import { describeTime } from "../../src/port/steps.ts";
import { createProgress, type ProduceText, type ReplyOptions, writeReply } from "../../src/reply/reply.ts";
import { createSteps } from "../../src/reply/steps.ts";
import { fakePlatform } from "../support/fake-platform.ts";

import { events, setUp } from "./reply-stage.ts";

/** Longer than the intervals at which a reply tells of a wait, or of a step that runs. */
const A_WHILE_MS = 10_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const pass = () => vi.advanceTimersByTime(A_WHILE_MS);

describe("a wait that lasts", () => {
  const held = () => Promise.withResolvers<void>();

  test("is told with Stop in the message that becomes the answer", async () => {
    const { options, channel, until, calls, texts } = setUp();
    const [told, hold] = [held(), held()];
    const visible: string[] = [];
    const writing = writeReply(events(hold.promise, "Hello"), {
      ...options,
      sink: { ...options.sink, tellsWaits: true },
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

  test("brings Stop long before it is told that it lasts", async () => {
    const { options, channel, until, texts } = setUp();
    const hold = held();
    const sink = { ...options.sink, tellsWaits: true };
    const writing = writeReply(events(hold.promise, "Hello"), { ...options, sink });
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

  test("brings no message for Stop while the platform has its own, however late it is refused", async () => {
    const { options, channel, until } = setUp();
    const [hold, asked] = [held(), held()];
    let isOffered = true;
    let count = 0;
    const sink = {
      ...options.sink,
      tellsWaits: true,
      get hasOwnStop() {
        count += 1;
        if (count === 3) asked.resolve();
        return isOffered;
      },
    };
    const writing = writeReply(events(hold.promise, "Hello"), { ...options, sink });
    vi.advanceTimersByTime(3_000);
    await asked.promise;
    expect(channel).toEqual([]);
    // It refuses it late.
    isOffered = false;
    vi.advanceTimersByTime(1_000);
    await until(() => channel.length === 1);
    hold.resolve();
    await writing;
  });

  test("is told the second way of writing where there are two: what may be stopped goes before what grows", async () => {
    const { options, texts, until } = setUp();
    const hold = held();
    const fallback = { isActive: false, activate: () => void (fallback.isActive = true) };
    const sink = { ...options.sink, tellsWaits: true, fallback };
    const writing = writeReply(events(hold.promise, "Hello"), { ...options, sink });
    vi.advanceTimersByTime(1_000);
    await until(() => texts()[0] === "_Waiting for the model …_");
    expect(fallback.isActive).toBe(true);
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["Hello"]);
  });

  test("ends in the note of a failure, in the same message", async () => {
    const { options, texts, until } = setUp({ closing: { note: "_It failed._", buttons: [] } });
    const hold = held();
    const writing = writeReply(events(hold.promise, new Error("down")), {
      ...options,
      sink: { ...options.sink, tellsWaits: true },
    });
    pass();
    await until(() => texts().length === 1);
    hold.resolve();
    await writing;
    expect(texts()).toEqual(["_It failed._"]);
  });

  test("is only said to progress where that shows words and Stop, and where an answer stands already", async () => {
    for (const [tellsWaits, posted] of [
      [false, []],
      [true, ["test:before"]],
    ] as const) {
      const { options, calls } = setUp({ posted: [...posted], closing: null });
      const [told, hold] = [Promise.withResolvers<string>(), held()];
      const sink = { ...options.sink, tellsWaits };
      const writing = writeReply(events(hold.promise), { ...options, sink, onWait: told.resolve });
      pass();
      expect(await told.promise).toBe("waiting for the model");
      hold.resolve();
      await writing;
      expect(calls).toEqual([]);
    }
  });

  test("is told anew for as long as its words change", async () => {
    const { options, texts, until } = setUp();
    const hold = held();
    const words = ["waiting", "waiting", "thinking, 10 s", "thinking, 20 s"];
    const told: string[] = [];
    const writing = writeReply(events(hold.promise, "Hello"), {
      ...options,
      sink: { ...options.sink, tellsWaits: true },
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

  test("is not told once there is text", async () => {
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

describe("the steps of a reply that is being written", () => {
  const running: Step = { id: "1.0", title: "looking", state: "running" };

  function setUpSteps(showsSteps: boolean, now?: () => number) {
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
      showsSteps,
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

  test("are shown with the text, also when that does not grow, and end with it", async () => {
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

  test("say how long they have run, again and again, and then what they took", async () => {
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

  test("say so in words where the reply shows none of them", async () => {
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

  test("begin no message, which would be one without words", async () => {
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

  test("cost no call of their own where they are not shown", async () => {
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
  test("hands over the button that ends what it shows", async () => {
    const stops: unknown[] = [];
    const { sink } = fakePlatform();
    const seeing = { ...sink, progress: async (_: string, __: AbortSignal, stop?: Button) => void stops.push(stop) };
    const stop: Button = { action: "stop", turnId: "turn-1", label: "Stop" };
    const shown = createProgress(seeing, stop);
    shown.show("thinking");
    await shown.clear();
    expect(stops).toContainEqual(stop);
  });

  test("leaves nothing behind, however slow the platform was to show it", async () => {
    const { sink, progress } = fakePlatform();
    const slow = Promise.withResolvers<void>();
    const held = { ...sink, progress: async (text: string) => void (await slow.promise, progress.push(text)) };
    const shown = createProgress(held);
    shown.show("thinking");
    shown.show("looking up the time");
    const cleared = shown.clear();
    slow.resolve();
    await cleared;
    expect(progress.at(-1)).toBe("");
    expect(progress).not.toContain("looking up the time");
  });

  test("does not hold up anybody while the platform hangs", async () => {
    const { sink } = fakePlatform();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const shown = createProgress({ ...sink, progress: () => new Promise(() => {}) });
    shown.show("thinking");
    const cleared = shown.clear();
    await vi.advanceTimersByTimeAsync(A_WHILE_MS);
    await expect(cleared).resolves.toBeUndefined();
  });

  test("is best effort: a platform that refuses it does not matter", async () => {
    const { sink } = fakePlatform();
    const shown = createProgress({ ...sink, progress: () => Promise.reject(new Error("no")) });
    shown.show("thinking");
    await expect(shown.clear()).resolves.toBeUndefined();
  });
});
