import { setImmediate as soon } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Outbound } from "../../../../adapters/slack/write/outbound.ts";
import { createRandom, type Random } from "../../../../lab/pacing/random.ts";
import type { Fault } from "../../../../lab/slack-sim/faults.ts";
import { DEFAULT_LIMITS } from "../../../../lab/slack-sim/limits.ts";
import type { Message } from "../../../../lab/slack-sim/world.ts";
import { createQuickScheduler } from "../../../../lab/support/quick-scheduler.ts";
import { mapBounded } from "../../../../src/concurrency/deadlines.ts";
import type { ReplyAddress } from "../../../../src/port/events.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { ReplySink, Step } from "../../../../src/port/sink.ts";
import { type ProduceText, type ReplyOptions, writeReply } from "../../../../src/reply/reply.ts";
import { createSteps, type Steps } from "../../../../src/reply/steps.ts";
import { addressOf, type Desk, RETRY, startDesk } from "../writing.ts";

/** Without limits, because these tests are not about the pace. */
const UNLIMITED = {
  postBurst: 10_000,
  perMinute: Object.fromEntries(Object.keys(DEFAULT_LIMITS.perMinute).map((method) => [method, 1_000_000])),
};
const METHODS = [
  "chat.startStream",
  "chat.appendStream",
  "chat.stopStream",
  "chat.postMessage",
  "chat.update",
  "conversations.replies",
];
const FAULTS: readonly Fault[] = [
  { status: 503 },
  { isDone: true, status: 504 },
  { cutsConnection: true },
  { isDone: true, cutsConnection: true },
  { html: "<html>busy</html>" },
  { isDone: true, omits: ["ts", "channel", "message"] },
  { error: "internal_error" },
  { retryAfterS: 0 },
];
const WORDS = [
  "word",
  "Ünïcode",
  "漢字",
  "👩‍👩‍👧",
  "<!channel>",
  "<@U012AB>",
  "`code <!here>`",
  "a < b",
  "**bold**",
  "&amp;",
];

/** The largest number of words that fit a reply's messages, even if each message ends when it is nearly full. */
const MAX_WORDS = 1_700;

type Record = ReplyOptions["record"];

interface Attempt {
  desk: Desk;
  outbound: Outbound;
  address: ReplyAddress;
  text: string;
  record: Record;
  isResumed: boolean;
  /** The process dies in this call. Slack executes the call, and no one gets the response. */
  diesIn?: number;
  /** If true, the text arrives letter by letter. */
  isSlow?: boolean;
  random: Random;
}

function toText(random: Random): string {
  const words: string[] = [];
  const count = random.pick([3, 30, 300, random.between(800, MAX_WORDS)]);
  for (let index = 0; index < count; index++) {
    const gap = random.next() < 0.03 ? "\n\n" : " ";
    words.push(`${random.pick(WORDS)}-${index}${random.next() < 0.01 ? "\n\n## Heading\n\n" : gap}`);
  }
  return words.join("");
}

function speak(text: string, steps: Steps, random: Random, isSlow = false): ProduceText {
  return async (onText) => {
    for (let at = 0, count = 0; at < text.length; count += 1) {
      // Of two parallel steps, one ends before more text arrives, and one ends later.
      if (count % 3 === 0) for (const id of [count, count + 1]) steps.note(step(id, "running"));
      if (count % 3 === 1) steps.note(step(count, "done"));
      if (count % 3 === 2) steps.note(step(count - 2, "failed"));
      const length = isSlow ? 1 : Math.ceil(random.between(1, text.length / 6));
      onText(text.slice(at, at + length));
      at += length;
      await soon();
    }
    return "stop";
  };
}

function step(id: number, state: Step["state"]): Step {
  return { id: String(id), title: `doing ${id}`, state };
}

/** A sink whose process dies in one of its calls. When it dies, `died` resolves. */
function dying(sink: ReplySink, diesIn = Infinity): { sink: ReplySink; died: Promise<void> } {
  const death = Promise.withResolvers<void>();
  let calls = 0;
  const wrap =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      calls += 1;
      if (calls < diesIn) return call(...args);
      if (calls === diesIn) await call(...args).catch(() => {});
      death.resolve();
      return new Promise<R>(() => {});
    };
  return {
    sink: new Proxy(sink, {
      get(target, name) {
        if (name === "post") return wrap(target.post);
        if (name === "edit") return wrap(target.edit);
        return Reflect.get(target, name);
      },
    }),
    died: death.promise,
  };
}

/**
 * One run of a reply. Resolves to the remaining record if the process died, or to undefined if the reply is finished.
 */
async function run(attempt: Attempt): Promise<Record | undefined> {
  const { outbound, address, text, isResumed, diesIn, isSlow, random } = attempt;
  const record = structuredClone(attempt.record);
  // The turn also stores this before its first post.
  let saved: Record = { ...structuredClone(record), isPosting: record.isPosting || record.posted.length === 0 };
  const save = async () => void (saved = structuredClone(record));
  const { sink, died } = dying(outbound.sink(address, NO_RIGHT), diesIn);
  const scheduler = createQuickScheduler(0, 20);
  const steps = createSteps();
  const writing = writeReply(speak(text, steps, random, isSlow), {
    sink,
    right: NO_RIGHT,
    steps,
    scheduler,
    record,
    isResumed,
    refusal: () => ({ note: "Refused.", buttons: [] }),
    onRecord: save,
    onSeen: save,
    onCall: () => {},
    onRefused: () => {},
    onVisible: () => {},
    describeWait: () => "",
    onWait: () => {},
    onEnd: () => ({ note: "", buttons: [RETRY] }),
  });
  const isDead = await Promise.race([writing.then(() => false), died.then(() => true)]);
  writing.catch(() => {});
  scheduler.close();
  return isDead ? saved : undefined;
}

function bare(text: string): string {
  return text.replace(/[\s\u200B]+/g, "");
}

/**
 * The text around the first difference between two texts. "" if they are equal. A whole text would be too long to read.
 */
function differenceOf(text: string, wanted: string): string {
  if (text === wanted) return "";
  let at = 0;
  while (text[at] === wanted[at]) at += 1;
  return `…${text.slice(at - 20, at + 60)}… instead of …${wanted.slice(at - 20, at + 60)}…, at ${at} of ${wanted.length}`;
}

function isFinished(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  const hasButtons = last?.content.blocks.some(({ type }) => type === "actions") ?? false;
  return hasButtons && messages.every(({ stream }) => stream === undefined || stream.state !== "in_progress");
}

/** Answers one question with as many processes as needed. Each process except the last dies in some call. */
async function answerDying(desk: Desk, seed: number): Promise<string> {
  const { slack, general, ada } = desk;
  const random = createRandom(seed);
  const question = ada.mention(general, `question ${seed}`);
  const address = addressOf(slack, general, question, ada);
  const text = toText(random);
  let record: Record | undefined = { id: `turn-${seed}`, posted: [], removed: 0, isPosting: false, seen: 0 };
  let outbound = desk.outbound;
  for (let life = 0; record !== undefined; life++) {
    const isLast = life === 2;
    const diesIn = Math.ceil(random.between(0, 5));
    const attempt = { desk, outbound, address, text, record, isResumed: life > 0, random };
    record = await run(isLast ? attempt : { ...attempt, diesIn });
    outbound = desk.restart();
  }
  return describeWrong(desk, question, text, seed);
}

/** Answers one question while some calls fail. Resolves to a description of the problem with the answer. */
async function answerWrongly(desk: Desk, outbound: Outbound, seed: number): Promise<string> {
  const { slack, general, ada } = desk;
  const random = createRandom(seed);
  const question = ada.mention(general, `question ${seed}`);
  const address = addressOf(slack, general, question, ada);
  const text = toText(random);
  for (let count = random.pick([0, 1, 2, 3]); count > 0; count--) {
    slack.failNext(random.pick(METHODS), random.pick(FAULTS));
  }
  const record: Record = { id: `turn-${seed}`, posted: [], removed: 0, isPosting: false, seen: 0 };
  await run({ desk, outbound, address, text, record, isResumed: false, random });
  return describeWrong(desk, question, text, seed);
}

function describeWrong({ slack, general }: Desk, question: Message, text: string, seed: number): string {
  const difference = differenceOf(bare(slack.texts(general, question).join("")), bare(text));
  if (difference !== "") return `${seed}: ${difference}`;
  return isFinished(slack.answers(general, question)) ? "" : `${seed}: it is not finished`;
}

describe("replies on Slack under faults", () => {
  for (const isNative of [true, false]) {
    const kind = isNative ? "native" : "fallback";

    test(`faults lose no reply, double none and leave none growing: ${kind}`, async () => {
      const desk = await startDesk({ limits: UNLIMITED });
      if (!isNative) desk.slack.setStreaming("unknown_method");
      const problems: string[] = [];
      // Each process looks up lost messages only as often as Slack allows.
      for (let batch = 0; batch < 3; batch++) {
        const outbound = desk.restart();
        const seeds = Array.from({ length: 12 }, (_, index) => 12 * batch + index + 1);
        problems.push(...(await Promise.all(seeds.map((seed) => answerWrongly(desk, outbound, seed)))));
      }
      expect(problems.filter((problem) => problem !== "")).toEqual([]);
    });

    test(`a reply is one answer even if the process dies in any call: ${kind}`, async () => {
      const desk = await startDesk({ limits: UNLIMITED });
      if (!isNative) desk.slack.setStreaming("unknown_method");
      const seeds = Array.from({ length: 32 }, (_, index) => index + 1);
      // Only few run at once. If calls waited for those of all others, the text would end before the first call.
      const problems = await mapBounded(seeds, 8, (seed) => answerDying(desk, seed));
      expect(problems.filter((problem) => problem !== "")).toEqual([]);
    });
  }
});

describe("deceptive links on Slack", () => {
  test.each([true, false])(
    "a link never leads elsewhere than its label says, however slowly it arrives; natively: %s",
    async (isNative) => {
      const desk = await startDesk({ limits: UNLIMITED });
      const { slack, general, question, address, outbound } = desk;
      if (!isNative) slack.setStreaming("unknown_method");
      const honest = "[the docs](https://docs.io) or [bank.com](https://bank.com/help)";
      const text = `Read ${honest} and sign in at [https://bank.com](https://evil.net), <https://evil.net|bank.com>, a < b.`;
      const record: Record = { id: "turn", posted: [], removed: 0, isPosting: false, seen: 0 };
      await run({ desk, outbound, address, text, record, isResumed: false, isSlow: true, random: createRandom(1) });
      const shown = text.replace("](https://evil", "]\u200B(https://evil").replace("<https", "<\u200Bhttps");
      expect(slack.texts(general, question)).toEqual([shown]);
      expect(desk.calls(isNative ? "chat.appendStream" : "chat.update")).toBeGreaterThan(0);
      expect(desk.calls(isNative ? "chat.update" : "chat.appendStream")).toBe(0);
      const sent = JSON.stringify(
        slack.requests.map(({ args }) => [args["markdown_text"], args["chunks"], args["blocks"]]),
      );
      expect(sent).toContain("evil.net");
      expect(sent).not.toMatch(/\[https:\/\/bank\.com\]\(|<https:\/\/evil\.net\|/);
    },
  );
});

describe("a very long answer on Slack", () => {
  test("a very long answer shows its start in messages, and is complete as a file", async () => {
    const desk = await startDesk({ limits: UNLIMITED });
    const { slack, general, question, address, outbound } = desk;
    const random = createRandom(1);
    const text = Array.from({ length: 1_200 }, (_, index) => `Paragraph ${index} of a very long answer.`).join("\n\n");
    const record: Record = { id: "turn", posted: [], removed: 0, isPosting: false, seen: 0 };
    await run({ desk, outbound, address, text, record, isResumed: false, random });
    const answers = slack.answers(general, question);
    expect(answers).toHaveLength(6);
    expect(bare(text).startsWith(bare(slack.texts(general, question).slice(0, 4).join("")))).toBe(true);
    const [file] = answers.at(-1)?.content.files ?? [];
    expect(Buffer.from(file?.bytes ?? []).toString()).toBe(`${text}\n`);
    expect(answers.every(({ stream }) => stream?.state !== "in_progress")).toBe(true);
  });
});
