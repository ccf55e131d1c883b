import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const PREFIX = "palaver_";

/** In seconds: fine steps up to five seconds, while people wait, then coarse ones up to the longest turn. */
const LATENCY_BUCKETS_S = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 13, 20, 30, 60, 120];

/**
 * Sampling interval. Each sample wakes the process: at 10 ms this costs 0.4 % of a core. Delays include the interval.
 */
const LAG_SAMPLE_MS = 100;

/** Gauges get their values when someone reads the metrics. A gauge with a label has one series per value. */
const GAUGES = {
  role: { help: "1 for the role of this process.", label: "role" },
  queue_waiting: { help: "Accepted events of this process that are not finished; add up all processes." },
  queue_active: { help: "Conversations that this process is working on." },
  queue_places: { help: "Conversations that this process can work on at once." },
  unkept_answers: { help: "Answers waiting in DATA_DIR to be added to the history." },
  store_reachable: { help: "1 while the store accepts writes." },
  gateway_working: { help: "0 while the gateway has a problem." },
  gateway_paused_models: { help: "Models paused after repeated failures or at the gateway's request." },
  platform_connected: { help: "1 while this process is connected to the platform.", label: "platform" },
} as const;

export type GaugeName = keyof typeof GAUGES;
/** One number, or one number for each value of the gauge's label. */
type Reading = number | Readonly<Record<string, number>>;
type Read = () => Reading | Promise<Reading>;

/** Counts events in this process. No method throws, because a turn must not fail because of a counter. */
export interface Metrics {
  /** `outcome` must be one of a few fixed words, because each word creates a series. */
  turnEnded(outcome: string): void;
  /** Records the seconds from a message, by the platform's clock, to the model's first text. */
  firstToken(seconds: number): void;
  /** Records the seconds from a message, by the platform's clock, to the first text that a person can read. */
  firstVisible(seconds: number): void;
  tokens(direction: "prompt" | "completion", count: number, estimated: boolean): void;
  feedback(platform: string, feedback: "good" | "bad"): void;
  reasonGiven(platform: string): void;
  /** Counts an image, once per `id`. Resolves when the image is counted or cannot be counted now. */
  pictureEnded(outcome: "drawn" | "failed" | "stopped", id: string): Promise<void>;
  platformCall(platform: string, call: "post" | "edit" | "upload" | "remove"): void;
  /** Counts a 429 that the service received. */
  rateLimited(side: "gateway" | "platform"): void;
  /** Counts an answer by the fallback model or the second gateway. */
  fellBack(to: "model" | "gateway"): void;
  streamOpened(): void;
  streamClosed(): void;
  /** Counts an event that was not accepted, so the platform must deliver it again. */
  intakeFailed(): void;
  /** Counts work that another process took over before this process had finished it. */
  takenOver(): void;
  /** Counts work that Palaver gave up on, because it repeatedly failed or killed its process. */
  givenUp(): void;
  /** Calls `read` on each read of the metrics. Replaces an earlier `read`. If it fails, the value is missing or 0. */
  observe(name: GaugeName, read: Read): void;
  /** Returns all metrics in Prometheus's text format. */
  render(): Promise<{ contentType: string; body: string }>;
}

/** The runtime's own metrics, such as memory. Node cannot stop collecting them, so all `Metrics` share one registry. */
let runtime: Registry | undefined;

export function createMetrics(): Metrics {
  runtime ??= observeRuntime();
  const registries = [runtime, new Registry()] as const;
  const [, registry] = registries;
  const counters = createCounters(registry);
  const firstToken = createLatency(
    registry,
    "first_token_seconds",
    "Time from a message's timestamp on its platform to the model's first text.",
  );
  const firstVisible = createLatency(
    registry,
    "first_visible_seconds",
    "Time from a message's timestamp on its platform to the first text shown.",
  );
  const streams = new Gauge({
    name: `${PREFIX}upstream_streams_open`,
    help: "Open streams from the gateway.",
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
    fellBack: (to) => counters.fallbacks.inc({ to }),
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
    turns: counter("turns_total", "Ended turns, by outcome.", ["outcome"]),
    tokens: counter("tokens_total", "Tokens, by direction and whether they were estimated.", [
      "direction",
      "estimated",
    ]),
    feedback: counter("feedback_total", "Ratings of answers, by platform and rating.", ["platform", "feedback"]),
    reasons: counter("feedback_reasons_total", "Reasons given for ratings, by platform.", ["platform"]),
    pictures: counter("pictures_total", "Requested images, by outcome.", ["outcome"]),
    platformCalls: counter("platform_calls_total", "Messages written to a platform, by call.", ["platform", "call"]),
    rateLimits: counter("rate_limits_total", "429 responses received, by sender.", ["side"]),
    fallbacks: counter("gateway_detours_total", "Requests to the fallback model or gateway, by target.", ["to"]),
    intakeFailures: counter("intake_failures_total", "Events that were not accepted.", []),
    takenOver: counter(
      "taken_over_total",
      "Work of this process that another process took over while it was still running.",
      [],
    ),
    givenUp: counter(
      "given_up_total",
      "Work that was given up because it failed or killed its process repeatedly.",
      [],
    ),
  };
  // Creates each series with the value 0, because alerts cannot see a series that first appears with its first event.
  for (const side of ["gateway", "platform"]) counters.rateLimits.inc({ side }, 0);
  for (const to of ["model", "gateway"]) counters.fallbacks.inc({ to }, 0);
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
