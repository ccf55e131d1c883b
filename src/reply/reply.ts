import { keepFences } from "../concurrency/fence.ts";
import { createNewest } from "../concurrency/newest.ts";
import type { Pace, Scheduler } from "../pacing/scheduler.ts";
import type { Button, ReplySink, Step } from "../port/sink.ts";
import type { Closing } from "./drafts.ts";
import { callPlatform } from "./platform-call.ts";
import { describeRunning, rendersSteps } from "./steps.ts";
import { createReplyWriter, type ReplyWriter, type ReplyWriterOptions } from "./writer.ts";

/** Longest the platform may take to accept the final text; after that the reply is given up. */
const FINAL_DEADLINE_MS = 120_000;
/** Longest a platform may take to show progress, which nobody misses. */
const PROGRESS_TIMEOUT_MS = 5_000;
/** A step that begins or ends weighs as much as this many characters of text: about a line. */
const STEP_UNITS = 40;
/** How long a step has run is shown anew this often; it weighs next to nothing beside text that waits to be shown. */
const TICK_MS = 5_000;
const TICK_UNITS = 1;
/** After this time without text a word with Stop is posted: it is there within the first second. */
const STOP_MS = 700;
/** People wait this long before they wonder what for, and as long again before they wonder how much longer. */
const WAIT_MS = 10_000;

/** The end of a turn: the gateway's word for it, or what was thrown. */
export type Cause = { finish: string } | { error: unknown };

/** Hands over the text of an answer as it comes. Resolves to the reason why it ended. */
export type ProduceText = (onText: OnText) => Promise<string>;

export interface ReplyOptions extends ReplyWriterOptions {
  scheduler: Scheduler;
  /** A text stands in its messages that nobody wants any more: a wait may be told in its place. */
  makesWay?: boolean;
  /** Says in words what the reply waits for; asked each time that there was no text for another `WAIT_MS`. */
  describeWait(): string;
  /** Told those words when they are others than before, to be shown beside the reply. */
  onWait(words: string): void;
  /** Told when the first text of this attempt stands on the platform. */
  onVisible(): void;
  /**
   * Called when no more text comes. Chooses the closing; undefined leaves the messages as they are, because somebody else
   * goes on with them. May throw: then nothing more is written, and `writeReply` rejects with that.
   */
  onEnd(cause: Cause, text: string): Closing | undefined;
}

/**
 * Writes a turn to the channel while it happens: the turn adds text to a draft, the writer shows the newest whenever
 * the scheduler says. Drafts may be skipped, the final never. Resolves to the text once the final stands, or the
 * platform refuses it for good. Rejects when the final was not accepted in time, when the reply was given up or the
 * scheduler closed, and with what `onEnd` throws.
 */
export async function writeReply(produceText: ProduceText, options: ReplyOptions): Promise<string> {
  let visible = false;
  const onCall: ReplyWriterOptions["onCall"] = (kind, error, isWait) => {
    options.onCall(kind, error, isWait);
    if (visible || isWait || error !== undefined || kind === "remove") return;
    visible = true;
    options.onVisible();
  };
  const writer = createReplyWriter({ ...options, onCall });
  const { sink, steps } = options;
  const { budget, room, fallback } = sink;
  const pace = options.scheduler.join(budget, { write: keepFences(writer.write), room, fallback });
  // A step begins no message: that would stand before what the step itself may post, such as a picture, and platforms
  // end one that grows after some minutes. Beside text, the next write brings it.
  steps?.follow(() => {
    if (rendersSteps(sink) && writer.text !== "") pace.text(STEP_UNITS);
  });
  const stopTelling = tellWaits(options, writer, pace);
  const ticking = setInterval(() => {
    if (steps?.tick() !== true) return;
    if (rendersSteps(sink) && writer.text !== "") pace.text(TICK_UNITS);
    else options.onWait(describeRunning(steps.all));
  }, TICK_MS);
  try {
    const cause = await toCause(produceText, (text) => {
      if (writer.text === "") stopTelling();
      writer.append(text);
      pace.text(text.length);
    });
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
    // No call of ours may overtake the next writer of these messages.
    await writer.settled();
  }
  return writer.text;
}

/** Tells what the reply waits for, as long as it has no text. Returns the function that ends that. */
function tellWaits({ sink, record, ...options }: ReplyOptions, writer: ReplyWriter, pace: Pace): () => void {
  // A text that stands there already says more.
  const isShown = sink.tellsWaits === true && (record.posted.length === 0 || options.makesWay === true);
  const show = (words: string) => {
    writer.wait(`_${words} …_`);
    pace.text(STEP_UNITS);
  };
  // Asked again and again: the platform may be slow to refuse its own Stop.
  const stopping = setInterval(() => {
    if (!isShown || sink.hasOwnStop === true) return;
    clearInterval(stopping);
    if (writer.text === "") show(toSentence(options.describeWait()));
  }, STOP_MS);
  let told = "";
  const waiting = setInterval(() => {
    const words = options.describeWait();
    if (writer.text !== "" || words === told) return;
    told = words;
    options.onWait(words);
    if (isShown) show(`Still ${words}`);
  }, WAIT_MS);
  return () => {
    clearInterval(stopping);
    clearInterval(waiting);
  };
}

/** An abort has a word as its reason. */
function toCutBy(cause: Cause): Step["cutBy"] {
  if (!("error" in cause)) return undefined;
  return typeof cause.error === "string" ? "stop" : "error";
}

function toSentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

async function toCause(produceText: ProduceText, onText: OnText): Promise<Cause> {
  try {
    return { finish: await produceText(onText) };
  } catch (error) {
    return { error };
  }
}

export interface Progress {
  /** Shows what is being done; "" takes it away. */
  show(text: string): void;
  /** Takes it away; resolves when nothing of it is under way any more. */
  clear(): Promise<void>;
}

/** Best effort: the newest text only, and no late "thinking" outlives `clear`. `stop` ends what is shown. */
export function createProgress(sink: ReplySink, stop?: Button): Progress {
  const show = (text: string) => callPlatform((signal) => sink.progress(text, signal, stop), PROGRESS_TIMEOUT_MS);
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
