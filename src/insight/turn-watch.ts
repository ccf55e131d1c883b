import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { waitAtMost } from "../concurrency/deadlines.ts";
import { PATIENT_PAUSES_MS, persist } from "../concurrency/retry.ts";
import type { ReplyAddress } from "../port/events.ts";
import { canBeTakenOver, type Right } from "../port/right.ts";
import type { InsightStore } from "./insight-store.ts";
import { MAX_STEPS, readStory, type Story } from "./story.ts";
import type { Ended, Trends } from "./trends.ts";

const TURNS = "turns";
const FAILURES = "failures";
const MAX_TURNS = 500;
const MAX_FAILURES = 500;
/** Maximum number of pieces of not yet visible text whose arrival times are kept. */
const MAX_ARRIVALS = 1_000;
/** Maximum time that the end of a turn waits for its story to be stored, if no other process could report the end. */
const KEEP_MS = 2_000;
/** With these pauses, storing a story survives an outage of half a minute. */
const KEEP_PAUSES_MS = [...PATIENT_PAUSES_MS, 4_000, 4_000, 4_000, 4_000, 4_000];

/** Outcomes that do not count as failures. */
const FINE: ReadonlySet<string> = new Set(["complete", "stopped", "waiting", "refused"]);

export interface TurnStart {
  turnId: string;
  conversationId: string;
  reply: ReplyAddress;
  author: { id: string; name: string };
  model: string;
  /** Unix milliseconds. */
  askedAt: number;
  /** Number of times the turn was started, including this one. */
  attempts: number;
}

export interface End {
  /** Number of times the turn has ended, including this one. A Retry restarts a turn. */
  number: number;
  outcome: string;
  note: string;
  messages: number;
  used: { promptTokens: number; completionTokens: number; estimatedTokens: number };
  calls: ReadonlyArray<{ name: string; tookMs?: number; state?: string }>;
}

/**
 * The end of a turn, as stored with the turn. If the process dies, the question's next attempt reports this end again.
 */
export interface KeptEnd extends Omit<End, "note">, Omit<TurnStart, "askedAt" | "attempts"> {
  /** Unix milliseconds. */
  at: number;
}

/** Receives what happens in one turn. Its methods never throw. */
export interface TurnListener {
  /** Adds a step in the bot's own words, without text from people or the model. */
  note(what: string): void;
  /** Notes that a tool call started or ended. The story does not contain its arguments. */
  step(state: "running" | "done" | "failed"): void;
  retry(waitMs: number, why: string): void;
  /** Notes that the platform refused a call. Both arguments are single words. */
  writeFailed(call: string, why: string): void;
  firstToken(): void;
  firstVisible(): void;
  /** Wraps `onText` to measure when text arrives. */
  listen(onText: (text: string) => void): (text: string) => void;
  /** Notes that a call was refused. `why` is one word that names who refused it and why. */
  refused(why: string): void;
  /** Notes that users now see this many units of the text. */
  shown(units: number): void;
  /** Notes the end of the turn. Resolves when the end is counted, or when counting has failed. */
  end(end: End): Promise<void>;
  /** Notes that the turn restarts or that another process continues it. Ignored after the end. */
  leave(reason: unknown): void;
}

/** Follows the running turns of this process, and lists the latest ended turns of all processes. */
export interface TurnWatch {
  /** Starts to follow a turn. If another process can take over the turn, its `end` waits until the story is stored. */
  begin(beginning: TurnStart, right: Right): TurnListener;
  /** Reports a stored end of a turn whose process died. Never rejects. */
  makeUp(end: KeptEnd): Promise<void>;
  running(): Story[];
  /** Both resolve to ended turns of all processes, newest first. */
  turns(): Promise<Story[]>;
  failures(): Promise<Story[]>;
  forget(isErased: (story: Story) => boolean): Promise<void>;
}

/** The state of a call that did not run in this attempt: the call was only planned, or an earlier attempt ran it. */
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

  /** Writes to both lists on a retry, because both may lack the story. */
  async function keep(story: Story): Promise<void> {
    const text = JSON.stringify(story);
    const push = async () => {
      for (const [list, max] of listsOf(story)) await store.push(list, text, max);
    };
    const onFailure = (err: unknown) =>
      log.warn({ err, turnId: story.turnId }, "the story of a turn could not be stored");
    await persist(push, onFailure, KEEP_PAUSES_MS);
  }

  /**
   * Returns each story once, even if a lost confirmation stored it twice. A turn that waited for approval and then
   * ended is listed only with its last end.
   */
  async function read(list: string): Promise<Story[]> {
    const stories = (await store.list(list)).flatMap((text) => readStory(text) ?? []);
    const once = [...new Map(stories.map((story) => [story.id, story])).values()];
    const later = new Set<string>();
    return once.filter(({ turnId, outcome }) => {
      const isOver = outcome !== "waiting" || !later.has(turnId);
      later.add(turnId);
      return isOver;
    });
  }

  /** Stores the story before counting the turn, so that every counted turn has a story. */
  async function endWith(story: Story): Promise<void> {
    await keep(story);
    await trends.end(story.id, toEnded(story));
  }

  return {
    begin(beginning, right) {
      const story = toStory(beginning, process, now());
      const { id } = story;
      running.set(id, story);
      return listenTo(story, {
        trends,
        now,
        left: () => void running.delete(id),
        async ended() {
          running.delete(id);
          const kept = endWith(story);
          // Wait until the story is stored: another process can report this end only while the turn is in the queue.
          await (canBeTakenOver(right) ? kept : waitAtMost(kept, KEEP_MS));
        },
      });
    },
    async makeUp({ number, at, outcome, messages, used, calls, ...beginning }) {
      const story = toStory({ ...beginning, askedAt: at, attempts: 1 }, process, at);
      Object.assign(story, toEndOf(story, { number, outcome, messages, used, calls }, at));
      const what = `Ended: ${outcome}. The process died before it reported any details`;
      story.steps = [{ at, what, ...(!FINE.has(outcome) && { isBad: true as const }) }];
      if (!(await trends.end(story.id, toEnded(story)))) return;
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
      ? [{ at, what: `Restarted (attempt ${attempts}) by ${process}` }]
      : [{ at, what: `Started by ${process}` }];
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
    state: "waiting for the model",
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
  ended(): Promise<void>;
  left(): void;
}

function listenTo(story: Story, { trends, now, ended, left }: ListenerDeps): TurnListener {
  /** The text that users don't see yet: for each arrival, the length of the text before it and its time. */
  const arrivals: Array<{ from: number; at: number }> = [];

  function note(what: string, isBad = false): void {
    if (story.steps.length < MAX_STEPS) story.steps.push({ at: now(), what, ...(isBad && { isBad }) });
    else if (story.steps.length === MAX_STEPS) story.steps.push({ at: now(), what: "… and more steps" });
  }

  return {
    note,
    step(state) {
      story.state = state === "running" ? "running a tool" : "waiting for the model";
      note(STEP_WORDS[state], state === "failed");
    },
    retry(waitMs, why) {
      story.retries += 1;
      story.state = "waiting to retry";
      note(`The AI service failed (${why}): retrying after ${seconds(waitMs)}`, true);
    },
    writeFailed(call, why) {
      note(`${story.reply.platform} refused a call (${call}: ${why})`, true);
    },
    firstToken() {
      if (story.firstTokenAt !== undefined) return;
      story.firstTokenAt = now();
      story.state = "writing";
      note("The first text arrived");
      trends.measure("firstToken", story.reply.platform, now() - story.acceptedAt);
    },
    firstVisible() {
      if (story.firstVisibleAt !== undefined) return;
      story.firstVisibleAt = now();
      note("Users saw the first text");
      trends.measure("firstVisible", story.reply.platform, now() - story.acceptedAt);
    },
    listen: (onText) => (text) => {
      if (arrivals.length < MAX_ARRIVALS) arrivals.push({ from: story.written, at: now() });
      story.written += text.length;
      onText(text);
    },
    refused(why) {
      note(`Failed (${why})`, true);
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
      await ended();
    },
    leave(reason) {
      if (story.endedAt !== undefined) return;
      note(reason === "superseded" ? "The question was edited: its answer restarts" : "Handed to the next attempt");
      left();
    },
  };
}

/** Returns a turn's end with an id, so that it is counted and stored once. */
function toEndOf({ turnId }: Story, { number, outcome, messages, used, calls }: Omit<End, "note">, endedAt: number) {
  const tokens = { prompt: used.promptTokens, completion: used.completionTokens, estimated: used.estimatedTokens };
  const tools = calls.map(({ name, tookMs, state = NOT_RUN }) => {
    return { name, state, ...(tookMs !== undefined && { tookMs }) };
  });
  return { id: `${turnId}:${number}`, endedAt, outcome, messages, tokens, tools, state: "ended" };
}

function toEnded({ outcome = "unknown", tokens, tools }: Story): Ended {
  return {
    counts: [
      ["turns", outcome],
      ...tools.filter(({ state }) => state !== NOT_RUN).map(({ name }) => ["tools", name] as const),
    ],
    times: tools.flatMap(({ name, tookMs }) => (tookMs === undefined ? [] : [["tool", name, tookMs] as const])),
    tokens,
  };
}

/**
 * Returns the lists that a story belongs to, in writing order. The list of failures comes first: if the process dies
 * between the two writes, the dashboard still shows the failure.
 */
function listsOf({ outcome = "" }: Story): ReadonlyArray<readonly [list: string, max: number]> {
  return [...(FINE.has(outcome) ? [] : [[FAILURES, MAX_FAILURES] as const]), [TURNS, MAX_TURNS]];
}

function seconds(ms: number): string {
  return `${Math.max(0.1, Math.round(ms / 100) / 10)} s`;
}
