import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { NEVER } from "../concurrency/deadlines.ts";
import { retry } from "../concurrency/retry.ts";
import type { Addition, Counters, Counts } from "../store/counters.ts";
import { truncate } from "../text/truncate.ts";
import { countOf, percentile, type Sketch, toStep } from "./sketch.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Counts are stored at this interval and at the end of each turn. */
const FLUSH_MS = 30_000;
const AGAIN_MS = 1_000;
const END_PAUSES_MS = Array.from({ length: 30 }, () => AGAIN_MS);
/** Maximum number of labels per count in a process. All further labels count as "others". */
const MAX_LABELS = 100;
/** Maximum number of batches that wait for an unavailable store: half an hour of a busy service. */
const MAX_BATCHES = 1_000;
const OTHERS = "others";

/** The bucket lengths. Each count goes into one bucket of each length; shorter buckets expire sooner. */
const SPANS = [
  { prefix: "m", lengthMs: 5 * MINUTE_MS, keptMs: DAY_MS + HOUR_MS },
  { prefix: "h", lengthMs: HOUR_MS, keptMs: 8 * DAY_MS },
  { prefix: "d", lengthMs: DAY_MS, keptMs: 91 * DAY_MS },
] as const;
type Span = (typeof SPANS)[number];

/** The dashboard's time ranges, with their bucket length. */
export const RANGES = {
  hour: { span: SPANS[0], points: 12 },
  day: { span: SPANS[0], points: 288 },
  week: { span: SPANS[1], points: 168 },
  month: { span: SPANS[2], points: 30 },
  quarter: { span: SPANS[2], points: 90 },
} as const;
export type RangeName = keyof typeof RANGES;

/** Kinds of events that are counted, each by labels. */
export type CountName = "turns" | "tools" | "votes" | "pictures";
/** Kinds of durations that are measured. The label of a `tool` duration is the tool's name. */
export type MeasureName = "firstToken" | "firstVisible" | "lag" | "tool";

export interface Series {
  /** Start of each point, in Unix milliseconds. */
  at: number[];
  /** A number for each point, by label. */
  counts: Record<CountName, Record<string, number[]>>;
  /** Percentiles by label, and for all labels together under "all". */
  times: Record<MeasureName, Record<string, Percentiles>>;
  tokens: { prompt: number[]; completion: number[] };
}

export interface Percentiles {
  count: number;
  p50: Array<number | null>;
  p95: Array<number | null>;
  p99: Array<number | null>;
  all: { p50: number; p95: number; p99: number };
}

/** Counts of all processes over time. Counting never throws and never waits. */
export interface Trends {
  count(name: CountName, label: string, by?: number): void;
  measure(name: MeasureName, label: string, ms: number): void;
  /**
   * Counts an ended turn once per `id`, even if several processes report it, for example after a crash. Resolves to
   * true when the count is stored, or after half a minute of failures; the count is then stored later. Resolves to
   * false if the turn was or may have been counted before.
   */
  end(id: string, ended: Ended): Promise<boolean>;
  /** Stores the counts. If that fails, resolves anyway and retries later. */
  flush(): Promise<void>;
  /** Rejects if the store is unavailable. */
  read(range: RangeName): Promise<Series>;
  close(): Promise<void>;
}

export interface Ended {
  counts: ReadonlyArray<readonly [name: CountName, label: string]>;
  times?: ReadonlyArray<readonly [name: MeasureName, label: string, ms: number]>;
  tokens?: { prompt: number; completion: number };
}

export interface TrendsOptions {
  counters: Pick<Counters, "add" | "read">;
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

export function createTrends({ counters, now, log }: TrendsOptions): Trends {
  const by = randomUUID();
  const labels = new Map<string, Set<string>>();
  let waiting = new Map<string, number>();
  /** Batches that are being stored. A batch keeps its name until the store has it, so that it counts only once. */
  const batches: Batch[] = [];
  let batchCount = 0;
  let again: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => void flush(), FLUSH_MS).unref();

  /** Returns the label to count under: "others" if there are too many, because people and models can use any names. */
  function toLabel(name: string, label: string): string {
    const known = labels.get(name) ?? new Set();
    labels.set(name, known);
    if (known.size < MAX_LABELS) known.add(label);
    return known.has(label) ? truncate(label.replaceAll("|", "/"), 200, "") : OTHERS;
  }

  /** Ignores values that cannot be counted. Callers pass a negative or unknown duration as 0. */
  function add(to: Map<string, number>, count: string, by: number): void {
    if (Number.isSafeInteger(by) && by > 0) to.set(count, (to.get(count) ?? 0) + by);
  }

  const toCount = (name: CountName, label: string) => `count|${name}|${toLabel(name, label)}`;
  const toTime = (name: MeasureName, label: string, ms: number) => `time|${name}|${toLabel(name, label)}|${toStep(ms)}`;

  function addBatch(once: string, counts: ReadonlyMap<string, number>): Batch {
    const batch = { once, additions: toAdditions(Object.fromEntries(counts), now()), isNew: false };
    batches.push(batch);
    // The store is unavailable, so drop the oldest batch that is not being sent.
    if (batches.length > MAX_BATCHES) batches.splice(1, 1);
    return batch;
  }

  async function storeBatches(): Promise<void> {
    if (waiting.size > 0) addBatch(`trends:${by}:${batchCount++}`, waiting);
    waiting = new Map();
    try {
      for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
        batch.isNew = await counters.add(batch.once, batch.additions);
        batches.shift();
      }
    } catch (err) {
      log.debug({ err }, "counts could not be stored; retrying later");
      clearTimeout(again);
      again = setTimeout(() => void flush(), AGAIN_MS).unref();
    }
  }

  function flush(): Promise<void> {
    flushing = flushing.then(storeBatches);
    return flushing;
  }

  return {
    count: (name, label, by = 1) => add(waiting, toCount(name, label), by),
    measure: (name, label, ms) => add(waiting, toTime(name, label, ms), Number(ms >= 0)),
    async end(id, { counts, times = [], tokens }) {
      const ended = new Map<string, number>();
      for (const [name, label] of counts) add(ended, toCount(name, label), 1);
      for (const [name, label, ms] of times) add(ended, toTime(name, label, ms), Number(ms >= 0));
      add(ended, "tokens|prompt", tokens?.prompt ?? 0);
      add(ended, "tokens|completion", tokens?.completion ?? 0);
      const batch = addBatch(`ended:${id}`, ended);
      const store = async () => {
        await flush();
        if (batches.includes(batch)) throw new Error("It is not stored yet.");
      };
      // Wait, because the turn has left the queue, so no other process would report its end.
      await retry(store, { pausesMs: END_PAUSES_MS, isIdle: true }, NEVER).catch(() => {});
      return batch.isNew;
    },
    flush,
    async read(range) {
      const { span, points } = RANGES[range];
      const starts = startsOf(span, points, now());
      const buckets = await counters.read(starts.map((at) => toRow(span, at)));
      return toSeries(starts, [...buckets.values()]);
    },
    async close() {
      clearInterval(timer);
      await flush();
      clearTimeout(again);
    },
  };
}

interface Batch {
  once: string;
  additions: Addition[];
  isNew: boolean;
}

function toAdditions(counts: Counts, at: number): Addition[] {
  return SPANS.map((span) => ({ row: toRow(span, startOf(span, at)), counts, ttlMs: span.keptMs }));
}

function toRow({ prefix }: Span, startMs: number): string {
  return `trends:${prefix}:${new Date(startMs).toISOString().slice(0, 16)}`;
}

function startOf({ lengthMs }: Span, at: number): number {
  return Math.floor(at / lengthMs) * lengthMs;
}

/** Returns the start times of the newest `points` buckets, oldest first. */
function startsOf(span: Span, points: number, at: number): number[] {
  const last = startOf(span, at);
  return Array.from({ length: points }, (_, index) => last - (points - 1 - index) * span.lengthMs);
}

type Field = readonly [kind: string, name: string, label: string, last: string];

function toSeries(at: number[], buckets: readonly Counts[]): Series {
  const zeros = () => at.map(() => 0);
  const counts: Series["counts"] = { turns: {}, tools: {}, votes: {}, pictures: {} };
  const tokens = { prompt: zeros(), completion: zeros() };
  const sketches = new Map<MeasureName, Map<string, Sketch[]>>();

  for (const [point, bucket] of buckets.entries()) {
    for (const [field, sum] of Object.entries(bucket)) {
      const [kind = "", name = "", label = "", last = ""] = field.split("|");
      const parts: Field = [kind, name, label, last];
      if (kind === "count") addCount(counts, parts, point, sum, zeros);
      if (kind === "time") addTime(sketches, parts, point, sum, at.length);
      if (kind === "tokens" && (name === "prompt" || name === "completion")) tokens[name][point] = sum;
    }
  }
  return { at, counts, times: toTimes(sketches), tokens };
}

function addCount(counts: Series["counts"], [, name, label]: Field, point: number, sum: number, zeros: () => number[]) {
  if (!Object.hasOwn(counts, name)) return;
  const series = ((counts[name as CountName] ??= {})[label] ??= zeros());
  series[point] = (series[point] ?? 0) + sum;
}

function addTime(
  sketches: Map<MeasureName, Map<string, Sketch[]>>,
  [, name, label, step]: Field,
  point: number,
  sum: number,
  points: number,
): void {
  const known = sketches.get(name as MeasureName) ?? new Map<string, Sketch[]>();
  const sketch = known.get(label) ?? Array.from({ length: points }, (): Sketch => new Map());
  sketch[point]?.set(Number(step), (sketch[point]?.get(Number(step)) ?? 0) + sum);
  sketches.set(name as MeasureName, known.set(label, sketch));
}

function toTimes(sketches: Map<MeasureName, Map<string, Sketch[]>>): Series["times"] {
  const times: Series["times"] = { firstToken: {}, firstVisible: {}, lag: {}, tool: {} };
  for (const [name, labels] of sketches) {
    if (!Object.hasOwn(times, name)) continue;
    for (const [label, points] of labels) times[name][label] = toPercentiles(points);
    times[name]["all"] = toPercentiles(mergePoints([...labels.values()]));
  }
  return times;
}

function mergePoints(labels: readonly Sketch[][]): Sketch[] {
  const points = labels[0]?.length ?? 0;
  return Array.from({ length: points }, (_, point) => merge(labels.flatMap((sketches) => sketches[point] ?? [])));
}

function merge(sketches: readonly Sketch[]): Sketch {
  const all: Sketch = new Map();
  for (const sketch of sketches) for (const [step, count] of sketch) all.set(step, (all.get(step) ?? 0) + count);
  return all;
}

function toPercentiles(points: readonly Sketch[]): Percentiles {
  const all = merge(points);
  const of = (share: number) => points.map((point) => percentile(point, share) ?? null);
  const ofAll = (share: number) => percentile(all, share) ?? 0;
  return {
    count: countOf(all),
    p50: of(0.5),
    p95: of(0.95),
    p99: of(0.99),
    all: { p50: ofAll(0.5), p95: ofAll(0.95), p99: ofAll(0.99) },
  };
}
