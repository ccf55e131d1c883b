import { FOLD_MARK } from "../text/folded-quote.ts";
import { neutralize } from "../text/neutralize.ts";
import { truncate } from "../text/truncate.ts";

/** Each report is a call to the platform. */
const TELL_MS = 5_000;

/** In UTF-16 units. Few people read more. */
const MAX_SHOWN_CHARS = 1_000;

/** The thoughts are visible while the model thinks, and are not part of the answer. */
export interface Thinking {
  add(text: string): void;
  /** Drops the thoughts, because the model restarts. */
  restart(): void;
  /** Stops the clock. Returns true if the model was thinking. */
  pause(): boolean;
  /** "thinking, 12 s" while it thinks, otherwise "". */
  describe(): string;
  /** Takes the thoughts as a quote to put before the answer. "" if there are none. */
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

/** Marks the quote as foldable if the platform supports that, because Markdown cannot. */
function toQuote(thoughts: string, lastedMs: number, isFolded: boolean): string {
  const whole = neutralize(thoughts).trim();
  if (whole === "") return "";
  const title = `Thought for ${Math.ceil(lastedMs / 1_000)} s`;
  const head = isFolded ? `${FOLD_MARK} ${title}` : `**${title}**`;
  return `${`${head}\n${truncate(whole, MAX_SHOWN_CHARS)}`.replace(/^/gm, "> ")}\n\n`;
}
