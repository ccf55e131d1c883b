import { createNewest } from "../concurrency/newest.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Right } from "../port/right.ts";
import type { Button, ReplySink, Step } from "../port/sink.ts";
import type { Closing } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";
import { describeRunning, rendersSteps } from "./steps.ts";
import { createReplyWriter, type ReplyWriter, type ReplyWriterOptions } from "./writer.ts";

/** How long the platform can take to accept the final text. After that, the reply is given up. */
const FINAL_DEADLINE_MS = 120_000;
/** Longest call that shows progress. It does no harm to skip one. */
const PROGRESS_TIMEOUT_MS = 5_000;
/** A started or finished step counts like this many characters of text, which is about a line. */
const STEP_UNITS = 40;
/**
 * How often the duration of a running step is updated. It counts almost nothing compared with text that waits to be
 * shown.
 */
const TICK_MS = 5_000;
const TICK_UNITS = 1;
/**
 * After this time without text, the bot posts a notice with a Stop button, so that it appears within the first second.
 */
const STOP_MS = 700;
/** People wait this long before they ask themselves why, and as long again before they ask how much longer. */
const WAIT_MS = 10_000;

/** How a turn ended: the gateway's finish reason, or the error. */
export type Cause = { finish: string } | { error: unknown };

/**
 * Passes an answer's text on while it arrives. Until there is text, the words passed to `tell` are shown instead.
 * Resolves to the finish reason.
 */
export type ProduceText = (onText: OnText, tell: (words: string) => void) => Promise<string>;

export interface ReplyOptions extends ReplyWriterOptions {
  scheduler: Scheduler;
  /** True if the messages show an outdated text, so a notice about a wait can replace it. */
  makesWay?: boolean;
  /**
   * Says in words what the reply waits for. Called each time another `WAIT_MS` have passed without text. Absent for a
   * reply that only shows the words passed to `tell`.
   */
  describeWait?(): string;
  /** Called with these words when they change, so that they can be shown next to the reply. */
  onWait?(words: string): void;
  /** Called when the first text of this attempt is on the platform. */
  onVisible?(): void;
  /**
   * Called when no more text follows. Chooses the closing. Undefined means that the messages do not change, because
   * another attempt or process continues them. If it throws, nothing more is written and `writeReply` rejects with that
   * error.
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
  // A step does not start a message. Otherwise the message would come before the step's own messages, such as a
  // picture, and platforms end a growing message after some minutes. If there is text, the next write shows the step.
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
    // This reply's last call must not overtake the next writer of these messages.
    await writer.settled();
  }
  return writer.text;
}

/** Shows what the reply waits for while it has no text. Returns a function that ends this. */
function tellWaits(
  { sink, record, describeWait, ...options }: ReplyOptions,
  writer: ReplyWriter,
  tell: (words: string) => void,
): () => void {
  if (describeWait === undefined) return () => {};
  // If there is text, people need no notice.
  const isShown = sink.traits?.waits !== undefined && (record.posted.length === 0 || options.makesWay === true);
  const show = (words: string) => tell(`_${words} …_`);
  // Checked repeatedly, because the platform can be slow to refuse its own Stop button.
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

/** An abort has a `CutReason` as its reason. */
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
  /** Shows the current work. "" removes the notice. */
  show(text: string): void;
  /** Removes the notice. Resolves when no call for it is in flight. */
  clear(): Promise<void>;
}

/**
 * Ignores failures. Shows only the newest text, and no late "thinking" after `clear`. `stop` is the button that stops
 * the work.
 */
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
