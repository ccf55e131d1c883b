import { FOLD_MARK } from "../text/folded-quote.ts";
import { neutralize } from "../text/neutralize.ts";
import { truncate } from "../text/truncate.ts";

/** Milliseconds between two reports, because each is a call to the platform. */
const TELL_MS = 5_000;

/** The largest part of the thoughts that is shown, in UTF-16 units. Few people read more in passing. */
const MAX_SHOWN_CHARS = 1_000;

/**
 * The model's thoughts before its answer. They are visible only while the model thinks, and are not part of the answer.
 */
export interface Thinking {
  add(text: string): void;
  /** The model restarts, so its thoughts so far are outdated. */
  restart(): void;
  /** The model does something else now. Returns true if it was thinking until then. */
  pause(): boolean;
  /** "thinking, 12 s" while it thinks, otherwise "". */
  describe(): string;
  /** Removes and returns the thoughts so far, as a quote to put before the answer. "" if there are none. */
  takeQuote(isFolded: boolean): string;
}

interface ThinkingOptions {
  /** Called every few seconds with a description. */
  onTell(words: string): void;
  /** Milliseconds from any starting point. */
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

/** A quote with a title. Marks it as foldable if the platform supports that, because Markdown has no syntax for it. */
function toQuote(thoughts: string, lastedMs: number, isFolded: boolean): string {
  const whole = neutralize(thoughts).trim();
  if (whole === "") return "";
  const title = `Thought for ${Math.ceil(lastedMs / 1_000)} s`;
  const head = isFolded ? `${FOLD_MARK} ${title}` : `**${title}**`;
  return `${`${head}\n${truncate(whole, MAX_SHOWN_CHARS)}`.replace(/^/gm, "> ")}\n\n`;
}
