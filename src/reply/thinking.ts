import { FOLD_MARK } from "../text/folded-quote.ts";
import { neutralize } from "../text/neutralize.ts";
import { truncate } from "../text/truncate.ts";

/** Milliseconds between two reports: each is a call to the platform. */
const TELL_MS = 5_000;
/** Shown of what was thought, in UTF-16 units: it is read on the way to the answer, if at all. */
const MAX_SHOWN_CHARS = 1_000;

/** The model's thoughts before its answer. They are told while they last, and are no part of the answer. */
export interface Thinking {
  add(text: string): void;
  /** The model begins anew: what it thought before came to nothing. */
  restart(): void;
  /** The model does something else. True when it was thinking until then. */
  pause(): boolean;
  /** "thinking, 12 s" while it lasts, else "". */
  describe(): string;
  /** Takes what was thought so far, as a quote to put before the answer; "" for nothing. */
  takeQuote(isFolded: boolean): string;
}

export interface ThinkingOptions {
  /** Told every few seconds, in words. */
  onTell(words: string): void;
  /** Milliseconds, of any origin. */
  now?(): number;
}

export function createThinking({ onTell, now = () => performance.now() }: ThinkingOptions): Thinking {
  let thoughts = "";
  /** The time at which it began to think; undefined while it does not. */
  let since: number | undefined;
  let beforeMs = 0;
  let toldAt = -Infinity;

  const lastedMs = () => beforeMs + (since === undefined ? 0 : now() - since);

  function describe(): string {
    if (since === undefined) return "";
    const seconds = Math.floor(lastedMs() / 1_000);
    return seconds === 0 ? "thinking" : `thinking, ${seconds} s`;
  }

  function pause(): boolean {
    const wasThinking = since !== undefined;
    beforeMs = lastedMs();
    since = undefined;
    toldAt = -Infinity;
    return wasThinking;
  }

  function restart(): void {
    pause();
    thoughts = "";
    beforeMs = 0;
  }

  return {
    add(text) {
      thoughts += text;
      since ??= now();
      if (now() - toldAt < TELL_MS) return;
      toldAt = now();
      onTell(describe());
    },
    restart,
    pause,
    describe,
    takeQuote(isFolded) {
      const quote = toQuote(thoughts, lastedMs(), isFolded);
      restart();
      return quote;
    },
  };
}

/** A quote under its title. Marked as one to fold where the platform can: Markdown itself has no word for that. */
function toQuote(thoughts: string, lastedMs: number, isFolded: boolean): string {
  const whole = neutralize(thoughts).trim();
  if (whole === "") return "";
  const title = `Thought for ${Math.ceil(lastedMs / 1_000)} s`;
  const head = isFolded ? `${FOLD_MARK} ${title}` : `**${title}**`;
  return `${`${head}\n${truncate(whole, MAX_SHOWN_CHARS)}`.replace(/^/gm, "> ")}\n\n`;
}
