import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { waitAtMost } from "../concurrency/deadlines.ts";
import { mayBeTakenOver } from "../concurrency/fence.ts";
import { PATIENT_PAUSES_MS, persist } from "../concurrency/retry.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { InsightStore } from "./insight-store.ts";
import { MAX_STEPS, readStory, type Story } from "./story.ts";
import type { Ended, Trends } from "./trends.ts";

const TURNS = "turns";
const FAILURES = "failures";
const MAX_TURNS = 500;
const MAX_FAILURES = 500;
/** Arrivals of unseen text that are timed one by one; any further text counts with the last of them. */
const MAX_ARRIVALS = 1_000;
/** Longest that the end of a turn waits for its story to be kept, where nobody else would tell of it. */
const KEEP_MS = 2_000;
/** A store may be away for half a minute, and the story is not missing afterwards. */
const KEEP_PAUSES_MS = [...PATIENT_PAUSES_MS, 4_000, 4_000, 4_000, 4_000, 4_000];

/** Outcomes that are as they were meant to be. */
const FINE: ReadonlySet<string> = new Set(["complete", "stopped", "waiting", "refused"]);

export interface TurnStart {
  turnId: string;
  conversationId: string;
  reply: ReplyAddress;
  author: { id: string; name: string };
  model: string;
  /** Unix milliseconds. */
  askedAt: number;
  /** Beginnings of the turn so far, this one included. */
  attempts: number;
}

export interface End {
  /** Ends of the turn so far, this one included: people have some begin anew. */
  number: number;
  outcome: string;
  /** Markdown under the answer. */
  note: string;
  messages: number;
  used: { promptTokens: number; completionTokens: number; estimatedTokens: number };
  calls: ReadonlyArray<{ name: string; tookMs?: number; state?: string }>;
}

/** The end of a turn as it is kept. Another attempt at its question reports it once more. */
export interface KeptEnd extends Omit<End, "note">, Omit<TurnStart, "askedAt" | "attempts"> {
  /** Unix milliseconds. */
  at: number;
}

/** Hears what happens to one turn. Nothing of it ever throws. */
export interface TurnListener {
  /** Something happened, in our own words: never in those of people or the model. */
  note(what: string): void;
  /** A tool was called, or has ended. The story does not hold its arguments. */
  step(state: "running" | "done" | "failed"): void;
  retry(waitMs: number, why: string): void;
  /** The platform did not take a call, in a word for each. */
  writeFailed(call: string, why: string): void;
  firstToken(): void;
  firstVisible(): void;
  /** Listens to the text of the answer as it comes. */
  listen(onText: (text: string) => void): (text: string) => void;
  /** Something was refused: by whom, and why, in a word. */
  refused(why: string): void;
  /** The platform shows this much of the text. */
  shown(units: number): void;
  /** The turn has ended. Resolves when that is counted, or cannot be. */
  end(end: End): Promise<void>;
  /** Another process goes on with the turn, or it is begun anew; after its end this does nothing. */
  leave(reason: unknown): void;
}

/** Follows turns, tells which of them run here, and keeps what became of the latest of all processes. */
export interface TurnWatch {
  begin(beginning: TurnStart): TurnListener;
  /** Tells of an end that a process had kept and not told when it died. Never rejects. */
  makeUp(end: KeptEnd): Promise<void>;
  /** The running turns of this process. */
  running(): Story[];
  /** The newest that ended, and those of them that did not end well; of all processes, newest first. */
  turns(): Promise<Story[]>;
  failures(): Promise<Story[]>;
  /** Erases the stories for which `isErased` is true. */
  forget(isErased: (story: Story) => boolean): Promise<void>;
}

/** The state of a call that was only planned, or was made before. */
const NOT_RUN = "not run";
const STEP_WORDS = { running: "A tool was called", done: "A tool ended", failed: "A tool failed" } as const;

const nothing = () => {};

export const NO_WATCH: Pick<TurnWatch, "begin" | "makeUp"> = {
  makeUp: async () => {},
  begin: () => ({
    note: nothing,
    step: nothing,
    retry: nothing,
    writeFailed: nothing,
    firstToken: nothing,
    firstVisible: nothing,
    listen: (onText) => onText,
    refused: nothing,
    shown: nothing,
    end: async () => {},
    leave: nothing,
  }),
};

export interface TurnWatchOptions {
  store: InsightStore;
  trends: Trends;
  process: string;
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

export function createTurnWatch({ store, trends, process, now, log }: TurnWatchOptions): TurnWatch {
  const running = new Map<string, Story>();

  /** Tries both lists again together: a story that is missing in the first may not stand in the second. */
  async function keep(story: Story): Promise<void> {
    const text = JSON.stringify(story);
    const push = async () => {
      for (const [list, max] of listsOf(story)) await store.push(list, text, max);
    };
    const onFailure = (err: unknown) =>
      log.warn({ err, turnId: story.turnId }, "the story of a turn could not be kept");
    await persist(push, onFailure, KEEP_PAUSES_MS);
  }

  /** A story that was kept twice, because the store's word of the first time was lost, is told once. */
  async function read(list: string): Promise<Story[]> {
    const stories = (await store.list(list)).flatMap((text) => readStory(text) ?? []);
    return [...new Map(stories.map((story) => [story.id, story])).values()];
  }

  /** Counted last, so that every counted turn has a story. */
  async function endWith(story: Story, refusal: string | undefined): Promise<void> {
    await keep(story);
    await trends.end(story.id, toEnded(story, refusal));
  }

  return {
    begin(beginning) {
      const story = toStory(beginning, process, now());
      const { id } = story;
      running.set(id, story);
      return listenTo(story, {
        trends,
        now,
        left: () => void running.delete(id),
        async ended(refusal) {
          running.delete(id);
          const kept = endWith(story, refusal);
          // Where others may take the turn over they tell of its end, as long as it is not off the queue.
          await (mayBeTakenOver() ? kept : waitAtMost(kept, KEEP_MS));
        },
      });
    },
    async makeUp({ number, at, outcome, messages, used, calls, ...beginning }) {
      const story = toStory({ ...beginning, askedAt: at, attempts: 1 }, process, at);
      Object.assign(story, toEndOf(story, { number, outcome, messages, used, calls }, at));
      const what = `Ended: ${outcome}. Its process died before it had told more`;
      story.steps = [{ at, what, ...(!FINE.has(outcome) && { isBad: true as const }) }];
      if (!(await trends.end(story.id, toEnded(story, undefined)))) return;
      const isThere = (await read(TURNS).catch(() => [])).some(({ id }) => id === story.id);
      if (!isThere) await keep(story);
    },
    running: () => [...running.values()],
    turns: () => read(TURNS),
    failures: () => read(FAILURES),
    async forget(isErased) {
      for (const list of [TURNS, FAILURES]) {
        const texts = (await store.list(list)).filter((text) => {
          const story = readStory(text);
          return story !== undefined && isErased(story);
        });
        if (texts.length > 0) await store.remove(list, texts);
      }
    },
  };
}

function toStory(
  { turnId, conversationId, reply, author, model, askedAt, attempts }: TurnStart,
  process: string,
  at: number,
): Story {
  const again =
    attempts > 1
      ? [{ at, what: `Begun again (attempt ${attempts}), by ${process}` }]
      : [{ at, what: `Begun by ${process}` }];
  return {
    v: 1,
    id: randomUUID(),
    turnId,
    conversationId,
    reply: { ...reply },
    author: { id: author.id, name: author.name },
    process,
    model,
    acceptedAt: askedAt,
    beganAt: at,
    state: "waits for the model",
    lagMs: 0,
    longestLagMs: 0,
    written: 0,
    shown: 0,
    messages: 0,
    retries: 0,
    tokens: { prompt: 0, completion: 0, estimated: 0 },
    tools: [],
    steps: [{ at: askedAt, what: "The question was asked" }, ...again],
  };
}

interface ListenerDeps {
  trends: Trends;
  now(): number;
  ended(refusal: string | undefined): Promise<void>;
  left(): void;
}

function listenTo(story: Story, { trends, now, ended, left }: ListenerDeps): TurnListener {
  let refusal: string | undefined;
  /** Arrivals of text that nobody sees yet: the length of the text before each, and its time. */
  const arrivals: Array<{ from: number; at: number }> = [];

  function note(what: string, isBad = false): void {
    if (story.steps.length < MAX_STEPS) story.steps.push({ at: now(), what, ...(isBad && { isBad }) });
    else if (story.steps.length === MAX_STEPS) story.steps.push({ at: now(), what: "… and more, which is not kept" });
  }

  return {
    note,
    step(state) {
      story.state = state === "running" ? "runs a tool" : "waits for the model";
      note(STEP_WORDS[state], state === "failed");
    },
    retry(waitMs, why) {
      story.retries += 1;
      story.state = "waits to ask again";
      trends.count("retries", why);
      note(`The gateway failed (${why}); asked again after ${seconds(waitMs)}`, true);
    },
    writeFailed(call, why) {
      trends.count("refusals", `${story.reply.platform}: ${why}`);
      note(`${story.reply.platform} did not take a call (${call}: ${why})`, true);
    },
    firstToken() {
      if (story.firstTokenAt !== undefined) return;
      story.firstTokenAt = now();
      story.state = "writes";
      note("The first text came");
      trends.measure("firstToken", story.reply.platform, now() - story.acceptedAt);
    },
    firstVisible() {
      if (story.firstVisibleAt !== undefined) return;
      story.firstVisibleAt = now();
      note("People saw the first text");
      trends.measure("firstVisible", story.reply.platform, now() - story.acceptedAt);
    },
    listen: (onText) => (text) => {
      if (arrivals.length < MAX_ARRIVALS) arrivals.push({ from: story.written, at: now() });
      story.written += text.length;
      onText(text);
    },
    refused(why) {
      refusal = why;
      note(`Refused (${why})`, true);
    },
    shown(units) {
      const oldest = arrivals[0];
      if (units <= story.shown || oldest === undefined) return;
      story.shown = units;
      const lagMs = now() - oldest.at;
      while (arrivals[0] !== undefined && arrivals[0].from < units) arrivals.shift();
      story.lagMs = lagMs;
      story.longestLagMs = Math.max(story.longestLagMs, lagMs);
      trends.measure("lag", story.reply.platform, lagMs);
    },
    async end({ note: sentence, ...end }) {
      const { outcome } = end;
      note(`Ended: ${outcome}`, !FINE.has(outcome));
      Object.assign(story, toEndOf(story, end, now()));
      if (sentence !== "") story.note = sentence.replace(/^_|_$/g, "");
      await ended(refusal);
    },
    leave(reason) {
      if (story.endedAt !== undefined) return;
      note(reason === "superseded" ? "The question was changed: its answer begins anew" : "Left to whoever goes on");
      left();
    },
  };
}

/** Gives the end an id of its own, under which it is counted and kept once. */
function toEndOf({ turnId }: Story, { number, outcome, messages, used, calls }: Omit<End, "note">, endedAt: number) {
  const tokens = { prompt: used.promptTokens, completion: used.completionTokens, estimated: used.estimatedTokens };
  const tools = calls.map(({ name, tookMs, state = NOT_RUN }) => {
    return { name, state, ...(tookMs !== undefined && { tookMs }) };
  });
  return { id: `${turnId}:${number}`, endedAt, outcome, messages, tokens, tools, state: "ended" };
}

function toEnded({ outcome = "unknown", tokens, tools }: Story, why: string | undefined): Ended {
  const refusal = why ?? (outcome === "refused" ? "quota" : undefined);
  return {
    counts: [
      ["turns", outcome],
      ...(refusal === undefined ? [] : [["refusals", refusal] as const]),
      ...tools.filter(({ state }) => state !== NOT_RUN).map(({ name }) => ["tools", name] as const),
    ],
    times: tools.flatMap(({ name, tookMs }) => (tookMs === undefined ? [] : [["tool", name, tookMs] as const])),
    tokens,
  };
}

/** A story that stands in the last of them stands in all, whenever its process died. */
function listsOf({ outcome = "" }: Story): ReadonlyArray<readonly [list: string, max: number]> {
  return [...(FINE.has(outcome) ? [] : [[FAILURES, MAX_FAILURES] as const]), [TURNS, MAX_TURNS]];
}

function seconds(ms: number): string {
  return `${Math.max(0.1, Math.round(ms / 100) / 10)} s`;
}
