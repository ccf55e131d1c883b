import { describe, expect, test } from "vitest";
import { withFence } from "../../src/concurrency/fence.ts";
import { SinkError, type SinkErrorKind } from "../../src/port/errors.ts";
import { createReplyView, type ReplyView } from "../../src/reply/view.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import { fakePlatform } from "../support/fake-platform.ts";

type Kept = Pick<TurnRecord, "id" | "posted" | "removed" | "isPosting" | "seen" | "sealed">;

const NEW: Kept = { id: "turn", posted: [], removed: 0, isPosting: false, seen: 0 };
const NO_CLOSING = { note: "", buttons: [] };

function begin({ maxLength = 2_000, record = structuredClone(NEW), platform = fakePlatform({ maxLength }) } = {}) {
  const refusals: SinkErrorKind[] = [];
  /** The record as it was when something was last noted. */
  let kept = structuredClone(record);
  const note = async () => void (kept = structuredClone(record));
  const view = createReplyView({
    sink: platform.sink,
    record,
    isResumed: record.seen > 0,
    refusal: { note: "_Not taken._", buttons: [] },
    onRecord: note,
    onSeen: note,
    onCall: () => {},
    onRefused: (kind) => void refusals.push(kind),
  });
  /** Messages that were posted by then take no change. */
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
  return { ...platform, platform, view, refusals, seal, kept: () => structuredClone(kept) };
}

/** Makes every call that is wanted. */
async function catchUp(view: ReplyView): Promise<void> {
  for (let count = 0; count < 50; count++) {
    const { behind } = await view.write();
    if (!behind) return;
  }
  throw new Error("The view never came to an end.");
}

async function grow(view: ReplyView, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    view.append(text);
    await catchUp(view);
  }
}

async function end(view: ReplyView, closing = NO_CLOSING): Promise<void> {
  view.end(closing);
  await catchUp(view);
}

describe("a reply whose message takes no more changes", () => {
  test("goes on in one message behind it, which comes when it is whole", async () => {
    const { view, seal, texts, calls, refusals } = begin();
    await grow(view, "One, two,");
    seal();
    await grow(view, " three,", " four,", " five.");
    expect(texts()).toEqual(["One, two,"]);
    await end(view, { note: "_Cut._", buttons: [] });
    expect(texts()).toEqual(["One, two,", "three, four, five.\n\n_Cut._"]);
    expect([calls, refusals]).toEqual([["post", "post"], []]);
  });

  test.each([true, false])(
    "says that it was whole where only its end is missing, and has its buttons there",
    async (tells) => {
      const { view, seal, channel } = begin();
      await grow(view, "One.");
      seal({ tells });
      const good = { action: "good", turnId: "turn", label: "Good answer" } as const;
      view.end({ note: "", buttons: [good] });
      await catchUp(view);
      expect(channel.map(({ draft }) => draft.markdown)).toEqual(["One.", expect.stringMatching(/whole answer/)]);
      expect(channel[1]?.draft.buttons).toEqual([good]);
    },
  );

  test("opens code again that goes on, and leaves none open that only had to be closed", async () => {
    const first = begin();
    await grow(first.view, "```ts\nconst a = 1;\n");
    first.seal();
    await grow(first.view, "const b = 2;\n```\n\nDone.");
    await end(first.view);
    expect(first.texts()).toEqual(["```ts\nconst a = 1;\n```", "```ts\nconst b = 2;\n```\n\nDone."]);
    const second = begin();
    await grow(second.view, "```ts\nconst a = 1;");
    second.seal();
    await grow(second.view, "\n```\n\nDone.");
    await end(second.view);
    expect(second.texts()).toEqual(["```ts\nconst a = 1;\n```", "Done."]);
  });

  test("comes in as many further messages as it needs, each shown when it is full", async () => {
    const { view, seal, texts } = begin({ maxLength: 60 });
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`);
    await grow(view, `${words.slice(0, 3).join(" ")} `);
    seal();
    await grow(view, ...words.slice(3).map((word) => `${word} `));
    expect(texts().length).toBeGreaterThan(3);
    await end(view);
    expect(texts().join(" ").split(" ")).toEqual(words);
  });

  test("goes on behind what a change brought that was taken, not behind one that was not", async () => {
    const { view, seal, setTrouble, texts } = begin();
    await grow(view, "One,");
    setTrouble((call) => (call === "edit" ? { kind: "rate-limited" } : undefined));
    view.append(" two,");
    await view.write();
    seal();
    await end(view, { note: "_Cut._", buttons: [] });
    expect(texts()).toEqual(["One,", "two,\n\n_Cut._"]);
  });

  test("goes on behind what a post brought of which nobody knew at first whether it was taken", async () => {
    const { view, platform, texts, setTrouble } = begin();
    const { post } = platform.sink;
    const known = () => platform.channel.map(({ id }) => id);
    platform.sink.post = async (...call) => {
      const before = known();
      const posted = await post(...call);
      return { ...posted, isPartial: before.includes(posted.id) };
    };
    setTrouble((call) => (call === "post" ? { kind: "unavailable", written: true } : undefined));
    view.append("One,");
    await view.write();
    view.append(" two.");
    setTrouble((call) => (call === "edit" ? { kind: "sealed" } : undefined));
    await end(view);
    expect(texts()).toEqual(["One,", "two."]);
  });

  test("says in a further message that the place takes no more, where that does", async () => {
    const { view, setTrouble, texts, refusals } = begin();
    await grow(view, "One,");
    let posts = 0;
    setTrouble((call) => {
      if (call === "edit") return { kind: "sealed" };
      return call === "post" && posts++ === 0 ? { kind: "rejected" } : undefined;
    });
    await grow(view, " two.");
    await end(view);
    expect([texts(), refusals]).toEqual([["One,", "_Not taken._"], ["rejected"]]);
  });

  test("ends where the place takes no further message either", async () => {
    const { view, setTrouble, texts, refusals } = begin();
    await grow(view, "One,");
    setTrouble((call) => ({ kind: call === "edit" ? "sealed" : "forbidden" }));
    await grow(view, " two.");
    await end(view);
    expect([texts(), refusals]).toEqual([["One,"], ["forbidden"]]);
  });

  for (const isKnown of [true, false]) {
    test(`is shown once after a crash, which came ${isKnown ? "after" : "before"} the first refusal`, async () => {
      const { view, platform, seal, kept, texts } = begin();
      await grow(view, "One, ", "two, ");
      if (isKnown) {
        seal();
        await grow(view, "three, ");
      }
      const record = kept();
      seal({ tells: true });
      const next = begin({ record, platform });
      await grow(next.view, "One, two", ", three, four.");
      await end(next.view);
      expect(texts()).toEqual(["One, two,", "three, four."]);
    });

    test(`is written whole after such a crash where the model gives another answer; refused before: ${isKnown}`, async () => {
      const { view, platform, seal, kept, texts } = begin();
      await grow(view, "One, ", "two, ");
      seal({ tells: true });
      if (isKnown) await grow(view, "three, ");
      const next = begin({ record: kept(), platform });
      await grow(next.view, "Uno,", " dos,", " tres, cuatro.");
      await end(next.view);
      expect(texts()).toEqual(["One, two,", "Uno, dos, tres, cuatro."]);
    });
  }

  test("is not ended twice where the crash came between its last message and the record of that", async () => {
    const { view, platform, seal, kept, texts } = begin();
    await grow(view, "One,");
    seal({ tells: true });
    await grow(view, " two.");
    const record = kept();
    await end(view);
    expect(texts()).toEqual(["One,", "two."]);
    const { post } = platform.sink;
    platform.sink.post = async (...call) => ({ ...(await post(...call)), isPartial: true });
    const next = begin({ record, platform });
    await grow(next.view, "One, two.");
    await end(next.view);
    expect(texts()).toEqual(["One,", "two."]);
  });

  test("comes whole once more rather than in part never, where nobody knows what an earlier attempt left", async () => {
    const { view, platform, seal, kept, texts } = begin();
    await grow(view, "One,");
    seal();
    const next = begin({ record: kept(), platform });
    await grow(next.view, "One, two.");
    await end(next.view);
    expect(texts()).toEqual(["One,", "One, two."]);
  });

  test("keeps all messages of an earlier attempt as they are when the first takes no changes", async () => {
    const words = Array.from({ length: 20 }, (_, index) => `word${index}`);
    const { view, platform, seal, kept, texts } = begin({ maxLength: 60 });
    await grow(view, words.slice(0, 10).join(" "));
    const before = texts();
    seal({ tells: true });
    const next = begin({ record: kept(), platform, maxLength: 60 });
    await grow(next.view, words.join(" "));
    await end(next.view);
    expect(texts().slice(0, before.length)).toEqual(before);
    expect(texts().join(" ").split(" ")).toEqual(words);
  });
});

test("the text that people are about to see is recorded before, once for many calls", async () => {
  const platform = fakePlatform();
  const record = structuredClone(NEW);
  let notes = 0;
  const view = createReplyView({
    sink: platform.sink,
    record,
    isResumed: false,
    refusal: NO_CLOSING,
    onRecord: async () => {},
    onSeen: async () => void (notes += 1),
    onCall: () => {},
    onRefused: () => {},
  });
  for (let call = 0; call < 40; call++) {
    view.append("Another forty characters of the answer. ");
    await view.write();
    expect(record.seen).toBeGreaterThanOrEqual(view.text.length);
  }
  expect(platform.calls).toHaveLength(40);
  expect(notes).toBeLessThanOrEqual(5);
});

test("the text that people are about to see is recorded exactly where another process may take the reply over", async () => {
  const fence = { key: "lane", value: "1", check: async () => {} };
  const { view, kept, platform, calls, texts } = withFence(fence, () => begin());
  await grow(view, "One piece.", " Another piece.");
  expect(kept().seen).toBe("One piece. Another piece.".length);
  const made = calls.length;
  const next = withFence(fence, () => begin({ record: kept(), platform }));
  await grow(next.view, "One piece. Another piece.");
  expect(calls).toHaveLength(made);
  await grow(next.view, " More.");
  expect(texts()).toEqual(["One piece. Another piece. More."]);
});
