import type { Changes } from "../support/changes.ts";
import type { Clock } from "./clock.ts";
import type { Limits } from "./limits.ts";
import type { Violations } from "./violations.ts";
import type { Json } from "./world.ts";

export type DeliveryType = "events_api" | "slash_commands" | "interactive";

/** The values of `x-slack-retry-reason` and `retry_reason`. `no_connection` means that there was no connection. */
export type FailureReason = "timeout" | "http_error" | "connection_failed" | "no_connection";

export type AttemptResult =
  | { isAcknowledged: true; response: unknown; takenMs: number }
  | { isAcknowledged: false; reason: FailureReason; detail: string; mayRetry: boolean };

/** A payload for the app, and its outcome. */
export interface Delivery {
  id: string;
  type: DeliveryType;
  /** A readable name: `message`, `/imagine`, `block_actions`. */
  name: string;
  payload: Json;
  attempts: AttemptResult[];
  /** When the delivery was first sent, and when the app acknowledged it. */
  toldAtMs: number | undefined;
  acknowledgedAtMs: number | undefined;
  /** Resolves when the app has acknowledged the delivery or Slack has given it up. */
  outcome: Promise<Outcome>;
  isSettled: boolean;
}

export interface Outcome {
  isAcknowledged: boolean;
  /** Content of the acknowledgement; undefined if empty. */
  response: unknown;
}

export interface Transport {
  /** Never rejects. Without a connection, an event waits. */
  send(delivery: Delivery, retry: Retry | undefined): Promise<AttemptResult>;
}

export interface Retry {
  num: number;
  reason: FailureReason;
}

export interface Dispatcher {
  readonly deliveries: readonly Delivery[];
  deliver(type: DeliveryType, name: string, payload: Json): Delivery;
  /** Repeats a delivery for no reason, as Slack sometimes does. */
  repeat(delivery: Delivery): Promise<AttemptResult>;
  /** Holds deliveries back until the returned function releases them. */
  hold(): (order?: "as-told" | "reversed") => void;
  /** After this, no pending delivery counts as late. */
  close(): void;
}

export interface DispatcherDeps {
  clock: Clock;
  changes: Changes;
  violations: Violations;
  limits: Limits;
  newId(prefix: string): string;
  transport(): Transport;
}

/** Sends deliveries, checks the acknowledgements, and retries events that were not acknowledged. */
export function createDispatcher({ clock, changes, violations, limits, newId, transport }: DispatcherDeps): Dispatcher {
  const deliveries: Delivery[] = [];
  let isClosed = false;
  let held: Array<() => void> | undefined;

  /** Checks how the app handled a delivery. An app that is down breaks no rule, because Slack retries. */
  function judge({ name, id }: Delivery, result: AttemptResult): void {
    const isDown = !result.isAcknowledged && ["no_connection", "connection_failed"].includes(result.reason);
    if (result.isAcknowledged || isDown || isClosed) return;
    violations.record("late-ack", `${name} (${id}) was not acknowledged: ${result.detail}.`);
  }

  async function attempt(delivery: Delivery, retry: Retry | undefined): Promise<AttemptResult> {
    delivery.toldAtMs ??= clock.now();
    const result = await transport().send(delivery, retry);
    delivery.attempts.push(result);
    if (result.isAcknowledged) delivery.acknowledgedAtMs ??= clock.now();
    judge(delivery, result);
    changes.changed();
    return result;
  }

  async function run(delivery: Delivery): Promise<Outcome> {
    let result = await attempt(delivery, undefined);
    const pausesMs = delivery.type === "events_api" ? limits.retryMs : [];
    for (const [index, pauseMs] of pausesMs.entries()) {
      if (result.isAcknowledged || !result.mayRetry) break;
      const { reason } = result;
      if (pauseMs > 0) await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
      result = await attempt(delivery, { num: index + 1, reason });
    }
    if (!result.isAcknowledged && delivery.type === "events_api" && !isClosed) {
      violations.record("late-ack", `${delivery.name} (${delivery.id}) was abandoned: ${result.detail}.`);
    }
    delivery.isSettled = true;
    changes.changed();
    return result.isAcknowledged
      ? { isAcknowledged: true, response: result.response }
      : { isAcknowledged: false, response: undefined };
  }

  return {
    deliveries,
    deliver(type, name, payload) {
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      const id = newId("envelope-");
      const delivery: Delivery = {
        id,
        type,
        name,
        payload,
        attempts: [],
        toldAtMs: undefined,
        acknowledgedAtMs: undefined,
        outcome: promise,
        isSettled: false,
      };
      deliveries.push(delivery);
      const send = () => void run(delivery).then(resolve);
      if (held === undefined) send();
      else held.push(send);
      changes.changed();
      return delivery;
    },
    repeat: (delivery) => attempt(delivery, { num: delivery.attempts.length, reason: "timeout" }),
    hold() {
      held ??= [];
      return (order = "as-told") => {
        const sends = held ?? [];
        held = undefined;
        for (const send of order === "reversed" ? sends.toReversed() : sends) send();
      };
    },
    close() {
      isClosed = true;
    },
  };
}
