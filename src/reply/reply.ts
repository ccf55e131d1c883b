import { createNewest } from "../concurrency/newest.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Right } from "../port/right.ts";
import type { Button, ReplySink, Step } from "../port/sink.ts";
import type { Closing } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";
import { describeRunning, rendersSteps } from "./steps.ts";
import { createReplyWriter, type ReplyWriter, type ReplyWriterOptions } from "./writer.ts";

/** If the platform does not accept the final text within this time, the reply is given up. */
const FINAL_DEADLINE_MS = 120_000;
/** Timeout for a call that shows a progress notice. Skipping a notice does no harm. */
const PROGRESS_TIMEOUT_MS = 5_000;
/** The pacing counts a change of a step like this many characters of text, which is about a line. */
const STEP_UNITS = 40;
/** How often running steps update their visible duration. Such an update is much less urgent than text. */
const TICK_MS = 5_000;
const TICK_UNITS = 1;
/** After this long without text, the reply shows a notice with a Stop button. People get the button within a second. */
const STOP_MS = 700;
/**
 * A reply without text says at this interval what it waits for, because people start to wonder after about this long.
 */
const WAIT_MS = 10_000;

/** Why an answer ended: the gateway's finish reason, or the error. */
export type Cause = { finish: string } | { error: unknown };

/**
 * Produces the answer and passes its text to `onText`. Until the first text, the reply shows the words passed to
 * `tell`. Resolves to the finish reason.
 */
export type ProduceText = (onText: OnText, tell: (words: string) => void) => Promise<string>;

export interface ReplyOptions extends ReplyWriterOptions {
  scheduler: Scheduler;
  /** True if the messages show outdated text, which a notice can replace. */
  makesWay?: boolean;
  /**
   * Says what the reply waits for. Called every `WAIT_MS` until there is text. If absent, only `tell` describes the
   * wait.
   */
  describeWait?(): string;
  /** Called when the words about the wait change, so that they can be shown next to the reply. */
  onWait?(words: string): void;
  onVisible?(): void;
  /**
   * Chooses the end of the reply. If it returns undefined, the messages do not change. If it throws, nothing more is
   * written and `writeReply` rejects with that error.
   */
  onEnd(cause: Cause, text: string): Closing | undefined;
}

/**
 * Writes a turn to the channel while the turn is running. The turn adds text to a draft, and the writer shows the
 * newest draft whenever the scheduler allows a call. The writer can skip drafts, but never the final text. Resolves to
 * the text when the final text is visible, or when the platform has permanently refused it. Rejects if the platform
 * does not accept the final text in time, if the reply is given up, if the scheduler is closed, or if `onEnd` throws.
 * Rejects with a `FencedError` if another process took the reply over.
 */
export async function writeReply(produceText: ProduceText, options: ReplyOptions): Promise<string> {
  let visible = false;
  const onCall: ReplyWriterOptions["onCall"] = (kind, error, isWait) => {
    options.onCall(kind, error, isWait);
    if (visible || isWait || error !== undefined || kind === "remove") return;
    visible = true;
    options.onVisible?.();
  };
  const writer = createReplyWriter({ ...options, onCall });
  const { sink, steps } = options;
  const { budget, room, fallback } = sink;
  const pace = options.scheduler.join(budget, { write: writer.write, room, fallback });
  // A step alone does not start the reply's first message. The step's own messages, such as pictures, must come before
  // the text, and platforms end a growing message after some minutes.
  steps?.follow(() => {
    if (rendersSteps(sink) && writer.text !== "") pace.text(STEP_UNITS);
  });
  const tell = (words: string) => {
    writer.wait(words);
    pace.text(STEP_UNITS);
  };
  const stopTelling = tellWaits(options, writer, tell);
  const ticking = setInterval(() => {
    if (steps?.tick() !== true) return;
    if (rendersSteps(sink) && writer.text !== "") pace.text(TICK_UNITS);
    else options.onWait?.(describeRunning(steps.all));
  }, TICK_MS);
  try {
    const onText = (text: string) => {
      if (writer.text === "") stopTelling();
      writer.append(text);
      pace.text(text.length);
    };
    const cause = await toCause(produceText(onText, tell));
    stopTelling();
    steps?.end(toCutBy(cause));
    const closing = options.onEnd(cause, writer.text);
    if (closing !== undefined) {
      writer.end(closing);
      await pace.end(AbortSignal.timeout(FINAL_DEADLINE_MS));
    }
  } finally {
    stopTelling();
    clearInterval(ticking);
    pace.leave();
    // Waits for the call in flight, so that the next writer of these messages cannot overtake it.
    await writer.settled();
  }
  return writer.text;
}

/** Shows what the reply waits for until there is text. Returns a function that ends this. */
function tellWaits(
  { sink, record, describeWait, ...options }: ReplyOptions,
  writer: ReplyWriter,
  tell: (words: string) => void,
): () => void {
  if (describeWait === undefined) return () => {};
  const isShown = sink.traits?.waits !== undefined && (record.posted.length === 0 || options.makesWay === true);
  const show = (words: string) => tell(`_${words} …_`);
  // While `waits` is `late`, the platform shows its own Stop button, so this checks again later.
  const stopping = setInterval(() => {
    if (!isShown || sink.traits?.waits === "late") return;
    clearInterval(stopping);
    if (writer.text === "") show(toSentence(describeWait()));
  }, STOP_MS);
  let told = "";
  const waiting = setInterval(() => {
    const words = describeWait();
    if (writer.text !== "" || words === told) return;
    told = words;
    options.onWait?.(words);
    if (isShown) show(`Still ${words}`);
  }, WAIT_MS);
  return () => {
    clearInterval(stopping);
    clearInterval(waiting);
  };
}

/** The error of an aborted answer is a `CutReason`, which is a string. */
function toCutBy(cause: Cause): Step["cutBy"] {
  if (!("error" in cause)) return undefined;
  return typeof cause.error === "string" ? "stop" : "error";
}

function toSentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

async function toCause(producing: Promise<string>): Promise<Cause> {
  try {
    return { finish: await producing };
  } catch (error) {
    return { error };
  }
}

export interface Progress {
  /** Shows a notice about the current work. "" removes the notice. */
  show(text: string): void;
  /** Removes the notice. Resolves when no call for the notice is in flight. */
  clear(): Promise<void>;
}

/** Shows notices about the current work. Ignores failures, and skips a notice if a newer one is waiting. */
export function createProgress(sink: ReplySink, right: Right, stop?: Button): Progress {
  const show = (text: string) =>
    callPlatform(right, (signal) => sink.progress(text, signal, stop), PROGRESS_TIMEOUT_MS);
  const texts = createNewest(show, "");
  return {
    show: texts.show,
    async clear() {
      texts.show("");
      await texts.settled();
    },
  };
}

export type OnText = (text: string) => void;
