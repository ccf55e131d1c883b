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
/** Skipping a progress notice does no harm. */
const PROGRESS_TIMEOUT_MS = 5_000;
/** A change of a step counts like this many characters, about a line. */
const STEP_UNITS = 40;
/** How often running steps show their duration. A tick is much less urgent than text. */
const TICK_MS = 5_000;
const TICK_UNITS = 1;
/** Then a notice with a Stop button appears, within the first second. */
const STOP_MS = 700;
/** People start to wonder after about this time, and again after the same time. */
const WAIT_MS = 10_000;

/** The gateway's finish reason, or the error. */
export type Cause = { finish: string } | { error: unknown };

/**
 * Passes the answer's text to `onText`. Until then, the reply shows the words passed to `tell`. Resolves to the finish
 * reason.
 */
export type ProduceText = (onText: OnText, tell: (words: string) => void) => Promise<string>;

export interface ReplyOptions extends ReplyWriterOptions {
  scheduler: Scheduler;
  /** True if the messages show an outdated text, which a notice can replace. */
  makesWay?: boolean;
  /** Says what the reply waits for. Called each `WAIT_MS` without text. Absent if only `tell` describes the work. */
  describeWait?(): string;
  /** Called with new words that must be shown next to the reply. */
  onWait?(words: string): void;
  onVisible?(): void;
  /**
   * Chooses the end of the reply. If undefined, the messages do not change. If it throws, nothing more is written and
   * `writeReply` rejects with that error.
   */
  onEnd(cause: Cause, text: string): Closing | undefined;
}

/**
 * Writes a turn to the channel while the turn is running. The turn adds text to a draft, and the writer shows the
 * newest draft whenever the scheduler allows a call. Drafts can be skipped, but the final text never is. Resolves to
 * the text when the final text is visible, or when the platform has refused it for good. Rejects if the final text is
 * not accepted in time, if the reply is given up or the scheduler is closed, with any error that `onEnd` throws, and
 * with a `FencedError` if another process took the reply over.
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
  // A step alone does not start a message, because the step's own messages, such as pictures, must come before the
  // text, and platforms end a growing message after some minutes.
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
    // The next writer of these messages must not overtake this call.
    await writer.settled();
  }
  return writer.text;
}

/** Returns a function that stops the notices. */
function tellWaits(
  { sink, record, describeWait, ...options }: ReplyOptions,
  writer: ReplyWriter,
  tell: (words: string) => void,
): () => void {
  if (describeWait === undefined) return () => {};
  const isShown = sink.traits?.waits !== undefined && (record.posted.length === 0 || options.makesWay === true);
  const show = (words: string) => tell(`_${words} …_`);
  // The platform can refuse its own Stop button late.
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

/** The error of an abort is a `CutReason`, which is a string. */
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
  /** "" removes the notice. */
  show(text: string): void;
  /** Removes the notice and waits for calls in flight. */
  clear(): Promise<void>;
}

/** Ignores failures. Skips outdated texts. */
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
