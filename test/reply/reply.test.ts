import { setImmediate as soon } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createQuickScheduler } from "../../lab/support/quick-scheduler.ts";
import { SinkError } from "../../src/port/errors.ts";
import { asResumed, FencedError, NO_RIGHT, type Right, withFence } from "../../src/port/right.ts";
import type { Draft, ReplySink } from "../../src/port/sink.ts";
import { type ProduceText, type ReplyOptions, writeReply } from "../../src/reply/reply.ts";
import { createSteps } from "../../src/reply/steps.ts";
import { events, setUp } from "./reply-stage.ts";

describe("writeReply", () => {
  test.each([
    ["stop", "stopped"],
    ["error", new Error("cut")],
  ] as const)("a running step is marked as cut by the %s that ends the reply", async (cutBy, reason) => {
    const { options } = setUp();
    const steps = createSteps();
    const shown: Draft[] = [];
    const { post, edit } = options.sink;
    const sink: ReplySink = {
      ...options.sink,
      traits: { steps: true },
      post: (draft, ...rest) => {
        shown.push(draft);
        return post(draft, ...rest);
      },
      edit: (id, draft, ...rest) => {
        shown.push(draft);
        return edit(id, draft, ...rest);
      },
    };
    const produce: ProduceText = async (onText) => {
      onText("Let me look.");
      steps.note({ id: "1", title: "looking", state: "running" });
      throw reason;
    };
    await writeReply(produce, { ...options, sink, steps });
    expect(shown.at(-1)?.steps).toMatchObject([{ state: "failed", cutBy }]);
  });

  test("a reply skips drafts while the platform is slow, but never the last draft", async () => {
    const { options, texts, calls, setTrouble, violations } = setUp();
    const slow = Promise.withResolvers<void>();
    setTrouble(() => slow.promise);
    const many: ProduceText = async (onText) => {
      for (let count = 0; count < 500; count++) onText("x");
      slow.resolve();
      return "stop";
    };
    await writeReply(many, options);
    expect(texts()).toEqual(["x".repeat(500)]);
    expect(calls.length).toBeLessThanOrEqual(3);
    expect(violations).toEqual([]);
  });

  test("a reply shows its end even in a message whose post seemed to fail", async () => {
    const { options, channel, setTrouble, until, calls } = setUp();
    const rest = Promise.withResolvers<void>();
    let failures = 1;
    setTrouble((call) => (call === "post" && failures-- > 0 ? { kind: "unavailable", written: true } : undefined));
    const writing = writeReply(events("Old", rest.promise, " and new"), options);
    await until(() => calls.length === 1);
    rest.resolve();
    await writing;
    expect(channel.map(({ draft }) => draft)).toEqual([{ markdown: "Old and new", streaming: false, buttons: [] }]);
  });

  test("a reply does not wait for a platform that never answers", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { options, channel, setTrouble } = setUp();
    let hangs = true;
    setTrouble(() => {
      if (!hangs) return undefined;
      hangs = false;
      return new Promise(() => {});
    });
    const free = { ...options.sink, post: options.sink.post };
    const writing = writeReply(events("Hello"), { ...options, sink: free });
    await vi.advanceTimersByTimeAsync(60_000);
    await writing;
    expect(channel.map(({ draft }) => draft.markdown)).toEqual(["Hello"]);
  });

  test("a reply repeats a write that the platform showed only in part", async () => {
    const { options, texts, calls } = setUp();
    let parts = 2;
    const edit: typeof options.sink.edit = async (...call) => {
      if (parts-- <= 0) return options.sink.edit(...call);
      return { isPartial: true };
    };
    await writeReply(events("Hel", soon(), "lo"), { ...options, sink: { ...options.sink, edit } });
    expect(texts()).toEqual(["Hello"]);
    expect(calls.filter((call) => call === "edit")).toHaveLength(1);
  });

  test("a reply uses the fallback for a message that is complete before its post", async () => {
    const { options, texts } = setUp();
    const fallback = { isActive: false, activate: () => void (fallback.isActive = true) };
    const taken: boolean[] = [];
    const post: typeof options.sink.post = (...call) => {
      taken.push(fallback.isActive);
      return options.sink.post(...call);
    };
    const scheduler = createQuickScheduler(50);
    // Another reply has just used the budget, so this one's text is complete when its turn comes.
    await writeReply(events("First"), { ...options, scheduler });
    const record = { ...options.record, id: "another", posted: [] };
    await writeReply(events("Hello"), { ...options, scheduler, record, sink: { ...options.sink, post, fallback } });
    expect(texts()).toEqual(["First", "Hello"]);
    expect(taken).toEqual([true]);
  });

  test("after a rate limit, a reply shows the newest text, not the refused text", async () => {
    const { options, setTrouble, texts, until, calls } = setUp();
    const rest = Promise.withResolvers<void>();
    let refuse = true;
    setTrouble((call) => {
      if (call !== "post" || !refuse) return undefined;
      refuse = false;
      return { kind: "rate-limited", retryAfterMs: 20 };
    });
    const writing = writeReply(events("old", rest.promise, " and new"), options);
    await until(() => calls.length === 1);
    rest.resolve();
    await writing;
    expect(texts()).toEqual(["old and new"]);
  });

  test("a reply edits an earlier attempt's messages, and removes those that it no longer needs", async () => {
    const posted: string[] = [];
    const { options, sink, texts, saved } = setUp({ posted });
    const draft = { markdown: "left over", buttons: [], streaming: true };
    for (const nonce of ["turn:0", "turn:1"])
      posted.push((await sink.post(draft, nonce, AbortSignal.timeout(1_000))).id);
    await writeReply(events("Short."), options);
    expect(texts()).toEqual(["Short."]);
    expect(saved.at(-1)).toEqual(posted);
    expect(posted).toHaveLength(1);
  });

  test("a reply that grows again posts new messages, and does not find those that it removed before", async () => {
    const record = { id: "turn", posted: [] as string[], removed: 0, isPosting: false, seen: 0 };
    const { options, texts } = setUp({ maxLength: 200 });
    const long = "word ".repeat(60).trim();
    for (const text of [long, "Short.", long]) await writeReply(events(text), { ...options, record });
    expect(texts().join(" ")).toBe(long);
  });

  test("a reply removes an uncertain post that it finally does not need", async () => {
    const record = { id: "turn", posted: [] as string[], removed: 0, isPosting: false, seen: 0 };
    const { options, setTrouble, channel } = setUp({ maxLength: 200, closing: null });
    setTrouble((call) =>
      call === "post" && channel.length === 1 ? { kind: "unavailable", written: true } : undefined,
    );
    const cut = Promise.withResolvers<void>();
    const onCall: ReplyOptions["onCall"] = (_, error) => error !== undefined && cut.resolve();
    await writeReply(events("word ".repeat(60), cut.promise, new Error("superseded")), { ...options, record, onCall });
    expect(channel).toHaveLength(2);
    setTrouble(() => undefined);
    const onEnd = () => ({ note: "", buttons: [] });
    await writeReply(events("Short."), { ...options, record, onEnd });
    expect(channel.map(({ draft }) => draft.markdown)).toEqual(["Short."]);
  });

  test("a reply shows no text twice if an uncertain post was never made", async () => {
    const { options, sink, texts } = setUp();
    const first = await sink.post(
      { markdown: "Hello", buttons: [], streaming: true },
      "turn:0",
      AbortSignal.timeout(1_000),
    );
    const record = { ...options.record, posted: [first.id], isPosting: true };
    const shown: string[] = [];
    const post: typeof sink.post = (draft, ...rest) => {
      shown.push(draft.markdown);
      return sink.post(draft, ...rest);
    };
    await writeReply(events("Hello world"), { ...options, record, sink: { ...options.sink, post } });
    expect(shown).toEqual(["…"]);
    expect(texts()).toEqual(["Hello world"]);
  });

  test("a reply looks for an earlier attempt's post even without a record of it", async () => {
    const { options } = setUp();
    const areFirst: Array<boolean | undefined> = [];
    const { post } = options.sink;
    const noting: typeof post = (draft, nonce, signal, isFirst) => {
      areFirst.push(isFirst);
      return post(draft, nonce, signal);
    };
    Object.assign(options.sink, { post: noting });
    const write = (id: string, right: Right) =>
      writeReply(events("Hello."), { ...options, right, record: { ...options.record, id, posted: [] } });
    await write("new", NO_RIGHT);
    await write("begun", asResumed(NO_RIGHT));
    expect(areFirst).toEqual([true, false]);
  });

  test("a reply continues if a message of an earlier attempt is gone, unless it is the first", async () => {
    const record = { id: "turn", posted: [] as string[], removed: 0, isPosting: false, seen: 0 };
    const { options, texts, channel, refusals } = setUp({ maxLength: 200 });
    const long = "word ".repeat(60).trim();
    await writeReply(events(long), { ...options, record });
    channel.splice(1, 1);
    await writeReply(events(long), { ...options, record });
    expect(texts().join(" ")).toBe(long);
    expect(refusals).toEqual([]);
  });

  test("a reply says under its text that the platform accepts no more text, and does not look unfinished", async () => {
    const { options, sink, channel, refusals } = setUp();
    const picky = {
      ...sink,
      edit: (id: string, draft: Draft, signal: AbortSignal) =>
        draft.markdown.includes("odd")
          ? Promise.reject(new SinkError("rejected", "invalid_blocks"))
          : sink.edit(id, draft, signal),
    };
    const posted = Promise.withResolvers<void>();
    const writing = writeReply(events("Even", posted.promise, " and odd"), {
      ...options,
      sink: picky,
      onVisible: posted.resolve,
    });
    await writing;
    expect(refusals).toEqual(["rejected"]);
    const draft = { markdown: "Even\n\n_Not taken._", buttons: [], streaming: false };
    expect(channel.map((message) => message.draft)).toEqual([draft]);
  });

  test("a reply records its message before it writes anything else", async () => {
    const { options, saved, calls } = setUp({ maxLength: 200 });
    const between: number[] = [];
    const onRecord = async () => {
      const before = calls.length;
      await new Promise((resolve) => setImmediate(resolve));
      between.push(calls.length - before);
      await options.onRecord();
    };
    await writeReply(events("word ".repeat(200)), { ...options, onRecord });
    expect(between.length).toBeGreaterThan(3);
    expect(between.every((count) => count === 0)).toBe(true);
    const counts = [...new Set(saved.map((ids) => ids.length))];
    expect(counts).toEqual(counts.map((_, index) => index + 1));
    expect(saved.at(-1)).toHaveLength(counts.length);
  });

  test("a reply puts the closing note under the text, and its buttons on the last message only", async () => {
    const buttons = [{ action: "retry" as const, turnId: "turn", label: "Retry" }];
    const { options, channel } = setUp({ maxLength: 300, closing: { note: "_Interrupted._", buttons } });
    await writeReply(events("word ".repeat(100), new Error("cut")), options);
    expect(channel.at(-1)?.draft.markdown).toMatch(/\n\n_Interrupted\._$/);
    expect(channel.map(({ draft }) => draft.buttons.length > 0)).toEqual(
      channel.map((_, index) => index === channel.length - 1),
    );
    expect(channel.every(({ draft }) => !draft.streaming)).toBe(true);
  });

  test("a reply leaves its messages to the next process without a call in flight", async () => {
    const { options, setTrouble, until, channel, calls } = setUp({ closing: null });
    const [slow, more] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    setTrouble((call) => (call === "edit" ? slow.promise : undefined));
    let ended = false;
    const writing = writeReply(events("One", more.promise, " two", new Error("superseded")), options).then(
      () => (ended = true),
    );
    await until(() => channel.length === 1);
    more.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    if (calls.includes("edit")) expect(ended).toBe(false);
    slow.resolve();
    await writing;
    expect(channel[0]?.draft.streaming).toBe(true);
  });

  test("a reply never shows half a character", async () => {
    const { options, channel, until } = setUp();
    const rest = Promise.withResolvers<void>();
    const writing = writeReply(events("ok \ud83d", rest.promise, "\ude00"), options);
    await until(() => channel.length === 1);
    expect(channel[0]?.draft.markdown.isWellFormed()).toBe(true);
    rest.resolve();
    await writing;
    expect(channel[0]?.draft.markdown).toBe("ok \ud83d\ude00");
  });

  test("a reply that resumes after a crash never shows less than people have read, and finally shows everything", async () => {
    const { options, sink, channel, until } = setUp();
    const { posted } = options.record;
    const draft = { markdown: "one two three", buttons: [], streaming: true };
    posted.push((await sink.post(draft, "turn:0", AbortSignal.timeout(1_000))).id);
    const [more, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const states: Array<string | undefined> = [];
    const watched = {
      ...sink,
      edit: async (...call: Parameters<typeof sink.edit>) => {
        states.push(call[1].markdown);
        return sink.edit(...call);
      },
    };
    const record = { ...options.record, posted, seen: "one two three".length };
    const writing = writeReply(events("one ", more.promise, "two three four", rest.promise, " five"), {
      ...options,
      record,
      sink: watched,
      isResumed: true,
    });
    await soon();
    expect(channel[0]?.draft.markdown).toBe("one two three");
    more.resolve();
    await until(() => channel[0]?.draft.markdown === "one two three four");
    rest.resolve();
    await writing;
    expect(states[0]).toBe("one two three four");
    expect(channel[0]?.draft.markdown).toBe("one two three four five");
  });

  test("a reply shows the head of an endless answer and posts the whole answer as a file, once", async () => {
    const words = Array.from({ length: 600 }, (_, index) => `word${index}`).join(" ");
    const { options, channel, violations } = setUp({ maxLength: 300, maxMessages: 3 });
    await writeReply(events(words), options);
    expect(channel).toHaveLength(5);
    expect(channel[3]?.draft.markdown).toBe("_The whole answer is in the attached file._");
    const [file, ...others] = channel.flatMap(({ files }) => files);
    expect(others).toEqual([]);
    expect(file?.name).toBe("answer.md");
    expect(new TextDecoder().decode(file?.bytes)).toBe(`${words}\n`);
    const head = channel
      .slice(0, 3)
      .map(({ draft }) => draft.markdown)
      .join(" ");
    expect(words.startsWith(head)).toBe(true);
    expect(violations).toEqual([]);
  });

  test("a reply says that the whole answer is in a file only once the file is posted", async () => {
    const words = Array.from({ length: 600 }, (_, index) => `word${index}`).join(" ");
    const { options, channel, setTrouble } = setUp({ maxLength: 300, maxMessages: 3 });
    const said: string[] = [];
    setTrouble((call) => {
      if (call === "upload") said.push(...channel.map(({ draft }) => draft.markdown));
      return undefined;
    });
    await writeReply(events(words), options);
    expect(said.at(-1)).toBe("_This answer is too long for messages here. I'll attach all of it as a file._");
    expect(said.join()).not.toContain("is in the attached file");
  });

  test("a reply ends at once when another process takes it over, and makes no more calls", async () => {
    const { options, calls, texts, until } = setUp();
    let isLost = false;
    const check = async () => {
      if (isLost) throw new FencedError("Another process took this reply over.");
    };
    const right = withFence(NO_RIGHT, { key: "lane", value: "mine", check });
    const lost = until(() => texts().includes("Tea")).then(() => (isLost = true));
    const writing = writeReply(events("Tea", lost, " is a drink."), { ...options, right });
    await expect(writing).rejects.toThrow(FencedError);
    expect([texts(), calls]).toEqual([["Tea"], ["post"]]);
  });

  test("a reply uses as many messages as it needs if the platform rejects the file", async () => {
    const words = Array.from({ length: 600 }, (_, index) => `word${index}`).join(" ");
    for (const kind of ["forbidden", "rejected"] as const) {
      const { options, channel, texts, setTrouble, refusals, violations } = setUp({ maxLength: 300, maxMessages: 3 });
      setTrouble((call) => (call === "upload" ? { kind } : undefined));
      await writeReply(events(words), options);
      expect(texts().join(" ")).toBe(words);
      expect(channel.flatMap(({ files }) => files)).toEqual([]);
      expect([refusals, violations]).toEqual([[], []]);
    }
  });

  test("a reply removes an earlier attempt's file if the new answer is shorter", async () => {
    const { options, channel, texts } = setUp({ maxLength: 300, maxMessages: 2 });
    await writeReply(events("word ".repeat(300)), options);
    expect(channel.flatMap(({ files }) => files)).toHaveLength(1);
    await writeReply(events("Short."), { ...options, isResumed: true });
    expect(texts()).toEqual(["Short."]);
  });
});
