import { FOLD_MARK } from "../text/folded-quote.ts";
import { neutralize } from "../text/neutralize.ts";
import { truncate } from "../text/truncate.ts";

/** The pause between two reports about the thinking, because each report is a call to the platform. */
const TELL_MS = 5_000;

/** The largest part of the thoughts that is shown, in UTF-16 units. Few people read more. */
const MAX_SHOWN_CHARS = 1_000;

/** The model's thoughts before its answer. They are not part of the answer. */
export interface Thinking {
  add(text: string): void;
  /** Drops the thoughts so far, because the model restarts. */
  restart(): void;
  /** Stops the clock, because the model does something else now. Returns true if the model was thinking. */
  pause(): boolean;
  /** "thinking, 12 s" while the model thinks, otherwise "". */
  describe(): string;
  /** Removes the thoughts and returns them as a quote to put before the answer. "" if the model had no thoughts. */
  takeQuote(isFolded: boolean): string;
}

interface ThinkingOptions {
  onTell(words: string): void;
  now?(): number;
}

export function createThinking({ onTell, now = () => performance.now() }: ThinkingOptions): Thinking {
  let thoughts = "";
  /** When the model started to think. Undefined while it does not think. */
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

/**
 * Quotes the thoughts under a title. If the platform can fold quotes, a mark makes the quote foldable, because Markdown
 * has no syntax for that.
 */
function toQuote(thoughts: string, lastedMs: number, isFolded: boolean): string {
  const whole = neutralize(thoughts).trim();
  if (whole === "") return "";
  const title = `Thought for ${Math.ceil(lastedMs / 1_000)} s`;
  const head = isFolded ? `${FOLD_MARK} ${title}` : `**${title}**`;
  return `${`${head}\n${truncate(whole, MAX_SHOWN_CHARS)}`.replace(/^/gm, "> ")}\n\n`;
}
