import type { ReplySink, Step } from "../port/sink.ts";
import { describeStep } from "../port/steps.ts";

export interface Steps {
  /** All steps, in the order in which they started. */
  readonly all: readonly Step[];
  /** Adds a step, or updates the step with the same id. */
  note(step: Step): void;
  /** Updates the durations of the running steps. Returns false if none is running. */
  tick(): boolean;
  /** Marks running steps as failed, because the answer has ended. `cutBy` says what ended an incomplete answer. */
  end(cutBy?: Step["cutBy"]): void;
  /** Calls this listener at each change, instead of any earlier listener. */
  follow(listener: () => void): void;
}

/** `now` returns the milliseconds of a monotonic clock. */
export function createSteps(now = () => performance.now()): Steps {
  const steps = new Map<string, Step>();
  let isOver = false;
  let tell = () => {};

  function note(step: Step): void {
    // An abandoned step can still report after the answer has ended.
    if (isOver) return;
    const { begunAt = now(), runningMs = 0 } = steps.get(step.id) ?? {};
    steps.set(step.id, { ...step, begunAt, ...(step.state === "running" ? { runningMs } : { endedAt: now() }) });
    tell();
  }

  function tick(): boolean {
    const running = [...steps.values()].filter(({ state }) => state === "running");
    for (const step of running) steps.set(step.id, { ...step, runningMs: now() - (step.begunAt ?? now()) });
    return running.length > 0;
  }

  return {
    get all() {
      return [...steps.values()];
    },
    note,
    tick,
    end(cutBy) {
      const cut = cutBy === undefined ? {} : { cutBy };
      for (const step of steps.values()) if (step.state === "running") note({ ...step, state: "failed", ...cut });
      isOver = true;
    },
    follow: (listener) => void (tell = listener),
  };
}

export function rendersSteps({ traits, fallback }: Pick<ReplySink, "traits" | "fallback">): boolean {
  return traits?.steps === true && fallback?.isActive !== true;
}

/**
 * Names the running steps. "" if none is running. If several have the same name, shows the one that has run longest.
 */
export function describeRunning(steps: readonly Step[]): string {
  const running = steps.filter(({ state }) => state === "running");
  const first = running.filter(({ title }, index) => running.findIndex((step) => step.title === title) === index);
  return first.map(describeStep).join(", ");
}

export interface PlacedSteps {
  place(steps: readonly Step[], lastIndex: number): void;
  of(index: number): readonly Step[];
}

/**
 * Assigns steps to messages. A running step moves along to the last message of the text. A finished step stays in the
 * message that shows it.
 */
export function createPlacedSteps(): PlacedSteps {
  const placed = new Map<string, { step: Step; index: number }>();

  return {
    place(steps, lastIndex) {
      for (const step of steps) {
        const before = step.state === "running" ? undefined : placed.get(step.id);
        placed.set(step.id, { step, index: before?.index ?? lastIndex });
      }
    },
    of: (index) => [...placed.values()].filter((one) => one.index === index).map(({ step }) => step),
  };
}
