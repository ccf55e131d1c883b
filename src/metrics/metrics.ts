import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const PREFIX = "palaver_";

/** Seconds. Made for waiting people: fine below five seconds, coarse up to the longest turn. */
const LATENCY_BUCKETS_S = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 13, 20, 30, 60, 120];

/**
 * Each sample of the event loop wakes the process: one every 10 ms, as is usual, keeps an idle one at 0.4 % of a core. The
 * delays that are shown include this time between two samples.
 */
const LAG_SAMPLE_MS = 100;

/** Counts what happens in this process. No method ever throws: a turn must not fail because it was counted. */
export interface Metrics {
  /** `outcome` is one of a few fixed words: each makes a series of its own. */
  turnEnded(outcome: string): void;
  /** From the acceptance of the message to the first text of the model. */
  firstToken(seconds: number): void;
  /** From the acceptance of the message to the first text that a person can read. */
  firstVisible(seconds: number): void;
  tokens(direction: "prompt" | "completion", count: number, estimated: boolean): void;
  /** Somebody judged an answer. */
  feedback(platform: string, feedback: "good" | "bad"): void;
  /** A picture that was asked for is there, or is not. */
  pictureEnded(outcome: "drawn" | "failed" | "stopped"): void;
  platformCall(platform: string, call: "post" | "edit" | "upload" | "remove"): void;
  /** A 429 received. */
  rateLimited(side: "gateway" | "platform"): void;
  streamOpened(): void;
  streamClosed(): void;
  /** `depth` is asked whenever the metrics are read; the latest one given counts. */
  observeQueue(depth: () => { waiting: number; active: number }): void;
  /** Everything in Prometheus' text format. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** Metrics of one process, with a registry of their own and the runtime's defaults (event-loop lag, memory, GC). */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: PREFIX, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  const counters = createCounters(registry);
  const firstToken = createLatency(
    registry,
    "first_token_seconds",
    "From an accepted message to the model's first text.",
  );
  const firstVisible = createLatency(
    registry,
    "first_visible_seconds",
    "From an accepted message to the first text shown.",
  );
  const streams = createGauge(registry, "upstream_streams_open", "Streams from the gateway that are open.");
  let queueDepth: (() => { waiting: number; active: number }) | undefined;
  createGauge(registry, "queue_waiting", "Accepted events that wait.", (gauge) =>
    gauge.set(queueDepth?.().waiting ?? 0),
  );
  createGauge(registry, "queue_active", "Conversations being worked on.", (gauge) =>
    gauge.set(queueDepth?.().active ?? 0),
  );

  return {
    turnEnded: (outcome) => counters.turns.inc({ outcome }),
    firstToken: (seconds) => observe(firstToken, seconds),
    firstVisible: (seconds) => observe(firstVisible, seconds),
    tokens(direction, count, estimated) {
      if (Number.isFinite(count) && count > 0) counters.tokens.inc({ direction, estimated: String(estimated) }, count);
    },
    feedback: (platform, feedback) => counters.feedback.inc({ platform, feedback }),
    pictureEnded: (outcome) => counters.pictures.inc({ outcome }),
    platformCall: (platform, call) => counters.platformCalls.inc({ platform, call }),
    rateLimited: (side) => counters.rateLimits.inc({ side }),
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    observeQueue(depth) {
      queueDepth = depth;
    },
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

function createCounters(registry: Registry) {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: PREFIX + name, help, labelNames, registers: [registry] });
  const counters = {
    turns: counter("turns_total", "Turns that ended, by how.", ["outcome"]),
    tokens: counter("tokens_total", "Tokens, by direction and whether they were estimated.", [
      "direction",
      "estimated",
    ]),
    feedback: counter("feedback_total", "Answers judged by people, by platform and judgement.", [
      "platform",
      "feedback",
    ]),
    pictures: counter("pictures_total", "Pictures asked for, by what became of them.", ["outcome"]),
    platformCalls: counter("platform_calls_total", "Messages written to a platform, by call.", ["platform", "call"]),
    rateLimits: counter("rate_limits_total", "429 answers received, by who gave them.", ["side"]),
  };
  // A series that appears only with its first event cannot be alerted on.
  for (const side of ["gateway", "platform"]) counters.rateLimits.inc({ side }, 0);
  return counters;
}

function createLatency(registry: Registry, name: string, help: string): Histogram {
  return new Histogram({ name: PREFIX + name, help, buckets: LATENCY_BUCKETS_S, registers: [registry] });
}

function createGauge(registry: Registry, name: string, help: string, collect?: (gauge: Gauge) => void): Gauge {
  const gauge: Gauge = new Gauge({
    name: PREFIX + name,
    help,
    registers: [registry],
    collect: () => collect?.(gauge),
  });
  return gauge;
}

function observe(histogram: Histogram, seconds: number): void {
  if (Number.isFinite(seconds) && seconds >= 0) histogram.observe(seconds);
}
