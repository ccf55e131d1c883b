import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const PREFIX = "palaver_";

/** Seconds. Made for waiting people: fine below five seconds, coarse up to the longest turn. */
const LATENCY_BUCKETS_S = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 13, 20, 30, 60, 120];

/** Each sample wakes the process: at the usual 10 ms an idle one takes 0.4 % of a core. Delays include this time. */
const LAG_SAMPLE_MS = 100;

/** Gauges, read whenever the metrics are. One with a label has a series for each of its values. */
const GAUGES = {
  role: { help: "1 for what this process does.", label: "role" },
  queue_waiting: { help: "Accepted events that are not done; those of all processes, where they share a Redis." },
  queue_active: { help: "Conversations that this process works on." },
  queue_places: { help: "Conversations that this process may work on at once." },
  unkept_answers: { help: "Answers that wait in DATA_DIR until the history takes them." },
  store_reachable: { help: "1 while the store takes what is written." },
  gateway_working: { help: "0 while the gateway does not do what it is configured for." },
  gateway_paused_models: { help: "Models that are left alone, as they failed again and again or asked for it." },
  platform_connected: { help: "1 while this process hears the platform.", label: "platform" },
} as const;

export type GaugeName = keyof typeof GAUGES;
/** One figure, or one for each value of the gauge's label. */
type Reading = number | Readonly<Record<string, number>>;
type Read = () => Reading | Promise<Reading>;

/** Counts what happens in this process. No method ever throws: a turn must not fail because it was counted. */
export interface Metrics {
  /** `outcome` is one of a few fixed words: each makes a series of its own. */
  turnEnded(outcome: string): void;
  /** From the platform's time of the message to the first text of the model. */
  firstToken(seconds: number): void;
  /** From the platform's time of the message to the first text that a person can read. */
  firstVisible(seconds: number): void;
  tokens(direction: "prompt" | "completion", count: number, estimated: boolean): void;
  /** Somebody judged an answer. */
  feedback(platform: string, feedback: "good" | "bad"): void;
  /** Somebody said why an answer is bad. */
  reasonGiven(platform: string): void;
  /** A picture is there, or failed. The same `id` counts once. Resolves when it is counted, or cannot be for now. */
  pictureEnded(outcome: "drawn" | "failed" | "stopped", id: string): Promise<void>;
  platformCall(platform: string, call: "post" | "edit" | "upload" | "remove"): void;
  /** A 429 received. */
  rateLimited(side: "gateway" | "platform"): void;
  /** Another model, or the second gateway, was asked in place of what a question was for. */
  detoured(to: "model" | "gateway"): void;
  streamOpened(): void;
  streamClosed(): void;
  /** An event was not accepted: the platform has to bring it again. */
  intakeFailed(): void;
  /** Work of this process was taken over by another one while it went on. */
  takenOver(): void;
  /** Work failed, or processes died of it, again and again. */
  givenUp(): void;
  /** Asked whenever the metrics are read; the latest one given counts. Where it fails, it reads as 0, or as no value. */
  observe(name: GaugeName, read: Read): void;
  /** Everything in Prometheus' text format. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** The runtime's own metrics (event-loop lag, memory, GC). What observes it cannot be ended: there is one. */
let runtime: Registry | undefined;

/** Metrics of one process, with a registry of their own and the runtime's. */
export function createMetrics(): Metrics {
  runtime ??= observeRuntime();
  const registries = [runtime, new Registry()] as const;
  const [, registry] = registries;
  const counters = createCounters(registry);
  const firstToken = createLatency(
    registry,
    "first_token_seconds",
    "From the platform's time of a message to the model's first text.",
  );
  const firstVisible = createLatency(
    registry,
    "first_visible_seconds",
    "From the platform's time of a message to the first text shown.",
  );
  const streams = new Gauge({
    name: `${PREFIX}upstream_streams_open`,
    help: "Streams from the gateway that are open.",
    registers: [registry],
  });
  const observed = createGauges(registry);

  return {
    turnEnded: (outcome) => counters.turns.inc({ outcome }),
    firstToken: (seconds) => observe(firstToken, seconds),
    firstVisible: (seconds) => observe(firstVisible, seconds),
    tokens(direction, count, estimated) {
      if (Number.isFinite(count) && count > 0) counters.tokens.inc({ direction, estimated: String(estimated) }, count);
    },
    feedback: (platform, feedback) => counters.feedback.inc({ platform, feedback }),
    reasonGiven: (platform) => counters.reasons.inc({ platform }),
    pictureEnded: async (outcome) => counters.pictures.inc({ outcome }),
    platformCall: (platform, call) => counters.platformCalls.inc({ platform, call }),
    rateLimited: (side) => counters.rateLimits.inc({ side }),
    detoured: (to) => counters.detours.inc({ to }),
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    intakeFailed: () => counters.intakeFailures.inc(),
    takenOver: () => counters.takenOver.inc(),
    givenUp: () => counters.givenUp.inc(),
    observe: (name, read) => void observed.set(name, read),
    async render() {
      const bodies = await Promise.all(registries.map((each) => each.metrics()));
      return { contentType: registry.contentType, body: bodies.join("\n") };
    },
  };
}

function observeRuntime(): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register, prefix: PREFIX, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  return register;
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
    reasons: counter("feedback_reasons_total", "Reasons that people gave for their judgement, by platform.", [
      "platform",
    ]),
    pictures: counter("pictures_total", "Pictures asked for, by what became of them.", ["outcome"]),
    platformCalls: counter("platform_calls_total", "Messages written to a platform, by call.", ["platform", "call"]),
    rateLimits: counter("rate_limits_total", "429 answers received, by who gave them.", ["side"]),
    detours: counter("gateway_detours_total", "Requests to the fallback model or gateway, by which.", ["to"]),
    intakeFailures: counter("intake_failures_total", "Events that were not accepted.", []),
    takenOver: counter("taken_over_total", "Work of this process that another one took over while it went on.", []),
    givenUp: counter("given_up_total", "Work that failed, or processes died of, again and again.", []),
  };
  // A series that appears only with its first event cannot be alerted on.
  for (const side of ["gateway", "platform"]) counters.rateLimits.inc({ side }, 0);
  for (const to of ["model", "gateway"]) counters.detours.inc({ to }, 0);
  return counters;
}

function createLatency(registry: Registry, name: string, help: string): Histogram {
  return new Histogram({ name: PREFIX + name, help, buckets: LATENCY_BUCKETS_S, registers: [registry] });
}

function createGauges(registry: Registry): Map<GaugeName, Read> {
  const observed = new Map<GaugeName, Read>();
  for (const [name, { help, label }] of Object.entries<{ help: string; label?: string }>(GAUGES)) {
    const gauge: Gauge = new Gauge({
      name: PREFIX + name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        const read = observed.get(name as GaugeName);
        const reading = await Promise.try(() => read?.()).catch(() => undefined);
        if (label === undefined) return gauge.set(typeof reading === "number" ? reading : 0);
        gauge.reset();
        for (const [value, figure] of Object.entries(reading ?? {})) gauge.set({ [label]: value }, figure);
      },
    });
  }
  return observed;
}

function observe(histogram: Histogram, seconds: number): void {
  if (Number.isFinite(seconds) && seconds >= 0) histogram.observe(seconds);
}
