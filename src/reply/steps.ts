import type { ReplySink, Step } from "../port/sink.ts";
import { describeStep } from "../port/steps.ts";

/** The steps of one reply and their current state. */
export interface Steps {
  /** The current state of each step, in the order in which they started. */
  readonly all: readonly Step[];
  /** Records a step that starts, or its new state. */
  note(step: Step): void;
  /** Updates the durations of the running steps. Returns false if none is running. */
  tick(): boolean;
  /**
   * The answer has ended, so steps that still run have failed. `cutBy` says what ended them, unless the answer is
   * complete.
   */
  end(cutBy?: Step["cutBy"]): void;
  /** From now on, calls this listener at each change, instead of the previous one. */
  follow(listener: () => void): void;
}

/** `now` returns the milliseconds of a clock that never goes back. */
export function createSteps(now = () => performance.now()): Steps {
  const steps = new Map<string, Step>();
  let isOver = false;
  let tell = () => {};

  function note(step: Step): void {
    // A step that was given up can still report its state.
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

/** True while the messages of the reply show its steps. */
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

/** The steps of a reply, by the message that shows them. */
export interface PlacedSteps {
  /** Assigns steps to the message with this index while it is the last one. */
  place(steps: readonly Step[], lastIndex: number): void;
  of(index: number): readonly Step[];
}

/** A running step moves to the next message with the text. A finished step stays in the message that showed it. */
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
