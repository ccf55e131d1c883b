import type { ReplySink, Step } from "../port/sink.ts";
import { describeStep } from "../port/steps.ts";

/** The steps of one reply, each as far as it has come. */
export interface Steps {
  /** The newest of each, in the order in which they began. */
  readonly all: readonly Step[];
  /** Takes note of a step that begins, or of what has become of one. */
  note(step: Step): void;
  /** Takes note of how long those have run that run. Returns false when none does. */
  tick(): boolean;
  /** The answer has ended: running steps have failed. `cutBy` says what ended them, unless the answer is complete. */
  end(cutBy?: Step["cutBy"]): void;
  /** Calls this listener at each change from here on, in place of the one before. */
  follow(listener: () => void): void;
}

/** `now` gives milliseconds of a clock that never goes back. */
export function createSteps(now = () => performance.now()): Steps {
  const steps = new Map<string, Step>();
  let isOver = false;
  let tell = () => {};

  function note(step: Step): void {
    // A step that was given up may still report.
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
export function rendersSteps({ showsSteps, fallback }: Pick<ReplySink, "showsSteps" | "fallback">): boolean {
  return showsSteps === true && fallback?.isActive !== true;
}

/** Names the steps that run, in words; "" when none does. Of several of one name the first has run longest. */
export function describeRunning(steps: readonly Step[]): string {
  const running = steps.filter(({ state }) => state === "running");
  const first = running.filter(({ title }, index) => running.findIndex((step) => step.title === title) === index);
  return first.map(describeStep).join(", ");
}

/** The steps of a reply by the message that shows them. */
export interface PlacedSteps {
  /** Takes in how far the steps have come while the message with this index is the last one. */
  place(steps: readonly Step[], lastIndex: number): void;
  of(index: number): readonly Step[];
}

/** A step that goes on is shown where the text goes on, and one that has ended stays in the message that showed it. */
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
