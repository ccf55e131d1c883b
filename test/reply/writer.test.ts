import { describe, expect, onTestFinished, test, vi } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { SinkError, type SinkErrorKind } from "../../src/port/errors.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createReplyWriter, type ReplyWriter } from "../../src/reply/writer.ts";
import type { TurnRecord } from "../../src/turn/record.ts";

type Kept = Pick<TurnRecord, "id" | "posted" | "removed" | "isPosting" | "seen" | "sealed">;

const NEW: Kept = { id: "turn", posted: [], removed: 0, isPosting: false, seen: 0 };
const NO_CLOSING = { note: "", buttons: [] };

function begin({ maxLength = 2_000, record = structuredClone(NEW), platform = fakePlatform({ maxLength }) } = {}) {
  const refusals: SinkErrorKind[] = [];
  /** The record as it was last stored. */
  let kept = structuredClone(record);
  const note = async () => void (kept = structuredClone(record));
  const writer = createReplyWriter({
    right: NO_RIGHT,
    sink: platform.sink,
    record,
    isResumed: record.seen > 0,
    refusal: () => ({ note: "_Not taken._", buttons: [] }),
    onRecord: note,
    onSeen: note,
    onCall: () => {},
    onRefused: (kind) => void refusals.push(kind),
  });
  /** Messages that were posted before this one accept no more edits. */
  function seal({ tells = false } = {}): void {
    platform.sink.edit = async (id, { markdown, source = markdown }) => {
      const { draft } = platform.channel.find((one) => one.id === id) ?? {};
      const shown = draft?.source ?? draft?.markdown ?? "";
      if (tells && draft?.streaming === false && shown === source) return {};
      throw new SinkError(
        "sealed",
        "It stays.",
        tells ? { shownLength: source.startsWith(shown) ? shown.length : 0 } : {},
      );
    };
  }
  return { ...platform, platform, writer, refusals, seal, kept: () => structuredClone(kept) };
}

/** Makes every call that the writer requests. */
async function catchUp(writer: ReplyWriter): Promise<void> {
  for (let count = 0; count < 50; count++) {
    const { behind } = await writer.write();
    if (!behind) return;
  }
  throw new Error("The writer never came to an end.");
}

async function grow(writer: ReplyWriter, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    writer.append(text);
    await catchUp(writer);
  }
}

async function end(writer: ReplyWriter, closing = NO_CLOSING): Promise<void> {
  writer.end(closing);
  await catchUp(writer);
}

describe("a reply whose message accepts no more edits", () => {
  test("a sealed reply continues in one more message, which is posted when the text is complete", async () => {
    const { writer, seal, texts, calls, refusals } = begin();
    await grow(writer, "One, two,");
    seal();
    await grow(writer, " three,", " four,", " five.");
    expect(texts()).toEqual(["One, two,"]);
    await end(writer, { note: "_Cut._", buttons: [] });
    expect(texts()).toEqual(["One, two,", "three, four, five.\n\n_Cut._"]);
    expect([calls, refusals]).toEqual([["post", "post"], []]);
  });

  test.each([true, false])(
    "a sealed reply says that it was complete if only its end is missing, and has its buttons there",
    async (tells) => {
      const { writer, seal, channel } = begin();
      await grow(writer, "One.");
      seal({ tells });
      const good = { action: "good", turnId: "turn", label: "Good answer" } as const;
      writer.end({ note: "", buttons: [good] });
      await catchUp(writer);
      expect(channel.map(({ draft }) => draft.markdown)).toEqual(["One.", expect.stringMatching(/end of my answer/)]);
      expect(channel[1]?.draft.buttons).toEqual([good]);
    },
  );

  test("a sealed reply reopens code that continues, and leaves no code open that only had to be closed", async () => {
    const first = begin();
    await grow(first.writer, "```ts\nconst a = 1;\n");
    first.seal();
    await grow(first.writer, "const b = 2;\n```\n\nDone.");
    await end(first.writer);
    expect(first.texts()).toEqual(["```ts\nconst a = 1;\n```", "```ts\nconst b = 2;\n```\n\nDone."]);
    const second = begin();
    await grow(second.writer, "```ts\nconst a = 1;");
    second.seal();
    await grow(second.writer, "\n```\n\nDone.");
    await end(second.writer);
    expect(second.texts()).toEqual(["```ts\nconst a = 1;\n```", "Done."]);
  });

  test("a sealed reply takes as many further messages as it needs, each posted when it is full", async () => {
    const { writer, seal, texts } = begin({ maxLength: 60 });
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`);
    await grow(writer, `${words.slice(0, 3).join(" ")} `);
    seal();
    await grow(writer, ...words.slice(3).map((word) => `${word} `));
    expect(texts().length).toBeGreaterThan(3);
    await end(writer);
    expect(texts().join(" ").split(" ")).toEqual(words);
  });

  test("a sealed reply continues after the text of the last accepted edit, not of a refused edit", async () => {
    const { writer, seal, setTrouble, texts } = begin();
    await grow(writer, "One,");
    setTrouble((call) => (call === "edit" ? { kind: "rate-limited" } : undefined));
    writer.append(" two,");
    await writer.write();
    seal();
    await end(writer, { note: "_Cut._", buttons: [] });
    expect(texts()).toEqual(["One,", "two,\n\n_Cut._"]);
  });

  test("a sealed reply continues after a post whose outcome was unknown at first", async () => {
    const { writer, platform, texts, setTrouble } = begin();
    const { post } = platform.sink;
    const known = () => platform.channel.map(({ id }) => id);
    platform.sink.post = async (...call) => {
      const before = known();
      const posted = await post(...call);
      return { ...posted, isPartial: before.includes(posted.id) };
    };
    setTrouble((call) => (call === "post" ? { kind: "unavailable", written: true } : undefined));
    writer.append("One,");
    await writer.write();
    writer.append(" two.");
    setTrouble((call) => (call === "edit" ? { kind: "sealed" } : undefined));
    await end(writer);
    expect(texts()).toEqual(["One,", "two."]);
  });

  test("a sealed reply says in a further message that the channel accepts no more", async () => {
    const { writer, setTrouble, texts, refusals } = begin();
    await grow(writer, "One,");
    let posts = 0;
    setTrouble((call) => {
      if (call === "edit") return { kind: "sealed" };
      return call === "post" && posts++ === 0 ? { kind: "rejected" } : undefined;
    });
    await grow(writer, " two.");
    await end(writer);
    expect([texts(), refusals]).toEqual([["One,", "_Not taken._"], ["rejected"]]);
  });

  test("a sealed reply ends if the channel accepts no further message either", async () => {
    const { writer, setTrouble, texts, refusals } = begin();
    await grow(writer, "One,");
    setTrouble((call) => ({ kind: call === "edit" ? "sealed" : "forbidden" }));
    await grow(writer, " two.");
    await end(writer);
    expect([texts(), refusals]).toEqual([["One,"], ["forbidden"]]);
  });

  for (const isKnown of [true, false]) {
    test(`a sealed reply is shown once after a crash ${isKnown ? "after" : "before"} the first refusal`, async () => {
      const { writer, platform, seal, kept, texts } = begin();
      await grow(writer, "One, ", "two, ");
      if (isKnown) {
        seal();
        await grow(writer, "three, ");
      }
      const record = kept();
      seal({ tells: true });
      const next = begin({ record, platform });
      await grow(next.writer, "One, two", ", three, four.");
      await end(next.writer);
      expect(texts()).toEqual(["One, two,", "three, four."]);
    });

    test(`after a crash, a sealed reply is rewritten if the model answers differently; refused before: ${isKnown}`, async () => {
      const { writer, platform, seal, kept, texts } = begin();
      await grow(writer, "One, ", "two, ");
      seal({ tells: true });
      if (isKnown) await grow(writer, "three, ");
      const next = begin({ record: kept(), platform });
      await grow(next.writer, "Uno,", " dos,", " tres, cuatro.");
      await end(next.writer);
      expect(texts()).toEqual(["One, two,", "Uno, dos, tres, cuatro."]);
    });
  }

  test("a sealed reply ends only once if the process crashed between its last message and the record", async () => {
    const { writer, platform, seal, kept, texts } = begin();
    await grow(writer, "One,");
    seal({ tells: true });
    await grow(writer, " two.");
    const record = kept();
    await end(writer);
    expect(texts()).toEqual(["One,", "two."]);
    const { post } = platform.sink;
    platform.sink.post = async (...call) => ({ ...(await post(...call)), isPartial: true });
    const next = begin({ record, platform });
    await grow(next.writer, "One, two.");
    await end(next.writer);
    expect(texts()).toEqual(["One,", "two."]);
  });

  test("a sealed reply is posted again in full if an earlier attempt's text is unknown", async () => {
    const { writer, platform, seal, kept, texts } = begin();
    await grow(writer, "One,");
    seal();
    const next = begin({ record: kept(), platform });
    await grow(next.writer, "One, two.");
    await end(next.writer);
    expect(texts()).toEqual(["One,", "One, two."]);
  });

  test("a sealed reply keeps all messages of an earlier attempt if the first accepts no more edits", async () => {
    const words = Array.from({ length: 20 }, (_, index) => `word${index}`);
    const { writer, platform, seal, kept, texts } = begin({ maxLength: 60 });
    await grow(writer, words.slice(0, 10).join(" "));
    const before = texts();
    seal({ tells: true });
    const next = begin({ record: kept(), platform, maxLength: 60 });
    await grow(next.writer, words.join(" "));
    await end(next.writer);
    expect(texts().slice(0, before.length)).toEqual(before);
    expect(texts().join(" ").split(" ")).toEqual(words);
  });
});

async function countNotes(
  calls: number,
  gapMs: number,
  onNoted: (record: Kept, text: string) => void,
): Promise<number> {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const platform = fakePlatform();
  const record = structuredClone(NEW);
  let notes = 0;
  const writer = createReplyWriter({
    right: NO_RIGHT,
    sink: platform.sink,
    record,
    isResumed: false,
    refusal: () => NO_CLOSING,
    onRecord: async () => {},
    onSeen: async () => void (notes += 1),
    onCall: () => {},
    onRefused: () => {},
  });
  for (let call = 0; call < calls; call++) {
    writer.append("twelve more ");
    await writer.write();
    onNoted(record, writer.text);
    vi.advanceTimersByTime(gapMs);
  }
  expect(platform.calls).toHaveLength(calls);
  return notes;
}

test("a process records a growing text before people see it, at most once in 0.7 s and at most 0.7 s of text ahead", async () => {
  const notes = await countNotes(100, 100, ({ seen }, { length }) => {
    expect(seen).toBeGreaterThanOrEqual(length);
    expect(seen).toBeLessThanOrEqual(length + 84);
  });
  expect(notes).toBeLessThanOrEqual(15);
});

test("a process records a text that grows less often than every 0.7 s only as far as the next call shows it", async () => {
  let first = true;
  const notes = await countNotes(10, 800, ({ seen }, { length }) => {
    // On the first call, the writer cannot know yet when the next one will come.
    if (!first) expect(seen).toBe(Math.max(length, "twelve more ".length + 40));
    first = false;
  });
  expect(notes).toBeLessThanOrEqual(10);
});
