import type { ChunkChoice } from "./chunks.ts";

/**
 * Cleans the text of one answer, however the gateway splits it into deltas. Removes repeated beginnings, moves tagged
 * thoughts to `reasoning`, and moves images written as data URLs to `pictures`.
 */
export function createAnswerText() {
  const repeats = createRepeatFilter();
  const thoughts = createThoughtFilter();
  const pictures = createPictureFilter();

  function take(text: string, isEnd: boolean) {
    const own = repeats.take(text, isEnd);
    const { thought, said } = thoughts.take(own, isEnd);
    return { thought, ...pictures.take(said, isEnd) };
  }

  return {
    /** Changes the choice in place. Keeps back text that can be the start of a tag or an image until the next delta. */
    apply({ index, delta, finish_reason }: ChunkChoice): void {
      if (index !== 0) return;
      const { content } = delta;
      // Only a reason without text ends the answer: some gateways send a finish reason with every piece of text.
      const isEnd = delta.tool_calls !== undefined || (Boolean(finish_reason) && !content);
      if (!content && !isEnd) return;
      const taken = take(content ?? "", isEnd);
      if (taken.thought !== "") delta.reasoning = (delta.reasoning ?? "") + taken.thought;
      if (taken.said !== "" || content !== undefined) delta.content = taken.said;
      if (taken.pictures.length > 0) delta.pictures = [...(delta.pictures ?? []), ...taken.pictures];
    },
    /** Returns the text and images that were kept back until the end of the answer. Usually there are none. */
    rest(): { content: string; pictures: string[] } {
      const { said, pictures } = take("", true);
      return { content: said, pictures };
    },
  };
}

/** With fewer deltas than this, a growing repetition can be a coincidence: many tables begin with "-", "--", "----". */
const MIN_REPEATS = 4;
const MIN_REPEATED_CHARS = 16;

/**
 * Removes the repetition of a gateway whose deltas each contain all earlier text. A delta that does not start with the
 * previous one proves that the gateway does not repeat. Until that is clear, the text is kept back.
 */
function createRepeatFilter() {
  let state: "open" | "repeats" | "plain" = "open";
  let deltas: string[] = [];
  let text = "";

  function decide(isRepeated: boolean): string {
    const [first = "", ...rest] = deltas;
    const whole = isRepeated ? (deltas.at(-1) ?? "") : deltas.join("");
    state = isRepeated ? "repeats" : "plain";
    text = whole;
    deltas = [];
    return rest.length === 0 ? "" : whole.slice(first.length);
  }

  function takeOpen(delta: string): string {
    const last = deltas.at(-1);
    if (last === undefined) {
      deltas = [delta];
      return delta;
    }
    if (delta.length <= last.length || !delta.startsWith(last)) return decide(false) + delta;
    deltas.push(delta);
    return deltas.length > 2 && delta.length >= MIN_REPEATED_CHARS ? decide(true) : "";
  }

  function takeRepeated(delta: string): string {
    if (!delta.startsWith(text)) return delta;
    const more = delta.slice(text.length);
    text = delta;
    return more;
  }

  return {
    take(delta: string, isEnd: boolean): string {
      if (state === "plain") return delta;
      const taken = state === "repeats" ? takeRepeated(delta) : delta === "" ? "" : takeOpen(delta);
      if (!isEnd || state !== "open") return taken;
      const last = deltas.at(-1) ?? "";
      const isLong = last.length >= MIN_REPEATED_CHARS && deltas.length > 1;
      return taken + decide(isLong || (deltas.length >= MIN_REPEATS && new Set(last).size > 1));
    },
  };
}

const OPENINGS = ["<think>", "<thinking>", "<thought>", "<reasoning>"];
const LONGEST_OPENING = Math.max(...OPENINGS.map((tag) => tag.length));
/** A tag after more white space than this counts as text. */
const MAX_HELD_CHARS = 64;

/**
 * Removes thoughts from the start of the answer; tags in later text count as text. There can be several thoughts. A
 * closing tag without an opening tag stays, because the start of its thought is unknown. After an opening tag without a
 * closing tag, all text is a thought.
 */
function createThoughtFilter() {
  let closing: string | undefined;
  let held = "";
  let hasThought = false;
  let isAnswer = false;

  /** Reads the start of `held`: removes a tag, starts the answer at text, or waits for more text. */
  function open(): void {
    const start = held.trimStart();
    const word = start.slice(0, LONGEST_OPENING).toLowerCase();
    const tag = OPENINGS.find((opening) => word.startsWith(opening));
    if (tag !== undefined) {
      closing = `</${tag.slice(1)}`;
      held = start.slice(tag.length);
    } else {
      isAnswer = held.length > MAX_HELD_CHARS || !OPENINGS.some((opening) => opening.startsWith(word));
    }
  }

  /** Removes the thought from the front of `held`, but leaves an end that can be the start of the closing tag. */
  function takeThought(tag: string): { thought: string; isOver: boolean } {
    const end = held.search(new RegExp(tag, "i"));
    const last = held.lastIndexOf("<");
    const isOpen = end === -1 && last !== -1 && tag.startsWith(held.slice(last).toLowerCase());
    const thought = held.slice(0, isOpen ? last : end === -1 ? held.length : end);
    held = held.slice(thought.length + (end === -1 ? 0 : tag.length));
    return { thought, isOver: end !== -1 };
  }

  function takeThoughts(): string {
    if (closing === undefined) open();
    let thoughts = "";
    while (closing !== undefined) {
      const { thought, isOver } = takeThought(closing);
      thoughts += thought;
      if (!isOver) break;
      closing = undefined;
      hasThought = true;
      open();
    }
    return thoughts;
  }

  return {
    take(text: string, isEnd: boolean): { thought: string; said: string } {
      if (isAnswer) return { thought: "", said: text };
      held += text;
      const thought = held === "" ? "" : takeThoughts();
      if (closing !== undefined || !(isAnswer || isEnd)) return { thought, said: "" };
      const said = hasThought ? held.trimStart() : held;
      held = "";
      return { thought, said };
    },
  };
}

/** At most this many images of one answer are kept. */
const MAX_PICTURES = 8;
const PICTURE =
  /(?:!\[[^\]\n]{0,200}\]\(\s{0,20}<?|<img [^>\n]{0,200}?src=["']?)?data:image\/[a-z0-9.+-]{1,40};base64,/i;
/** Matches if a text ends with the possible start of a data URL. */
const MAYBE_DATA = `(?:${optional("data:image/")}|data:image/[a-z0-9.+-]{1,40}(?:;b?a?s?e?6?4?)?)`;
const MAYBE_PICTURE = new RegExp(
  `(?:!(?:\\[[^\\]\\n]{0,200}(?:\\](?:\\(\\s{0,20}<?${MAYBE_DATA}?)?)?)?|<(?:i(?:m(?:g(?: [^>\\n]{0,260})?)?)?)?|${MAYBE_DATA})$`,
  "i",
);
/** The longest Markdown or HTML that can follow an image, such as a title. */
const MAX_CLOSING_CHARS = 200;
const NO_BASE64 = /[^A-Za-z0-9+/=]/;
/** A cheap test for every delta: without a match, no image starts in the text or at its end. */
const MAY_BEGIN = /data:|!\[|<i|(?:d|da|dat|data|!|<)$/i;

function optional(word: string): string {
  const [first = "", ...rest] = word;
  return rest.length === 0 ? first : `${first}(?:${optional(rest.join(""))})?`;
}

/** Moves base64 images out of the text. */
function createPictureFilter() {
  let held = "";
  let picture: string[] | undefined;
  /** The rest of the latest image's Markdown or HTML, which is yet to arrive. */
  let closing = "";
  let count = 0;

  function finish(pictures: string[]): void {
    if (picture !== undefined && count < MAX_PICTURES) pictures.push(picture.join(""));
    count += 1;
    picture = undefined;
  }

  return {
    take(text: string, isEnd: boolean): { said: string; pictures: string[] } {
      const pictures: string[] = [];
      // Almost all deltas take this shortcut.
      if (held === "" && picture === undefined && closing === "" && !MAY_BEGIN.test(text))
        return { said: text, pictures };
      let said = "";
      held += text;
      while (held !== "") {
        if (picture !== undefined) {
          const end = held.search(NO_BASE64);
          picture.push(end === -1 ? held : held.slice(0, end));
          held = end === -1 ? "" : held.slice(end);
          if (end !== -1) finish(pictures);
          continue;
        }
        if (closing !== "") {
          const end = held.indexOf(closing);
          if (end === -1 && held.length <= MAX_CLOSING_CHARS && !isEnd) break;
          if (end !== -1 && end <= MAX_CLOSING_CHARS) held = held.slice(end + 1);
          closing = "";
          continue;
        }
        const found = PICTURE.exec(held);
        if (found !== null) {
          said += held.slice(0, found.index);
          closing = found[0].startsWith("!") ? ")" : found[0].startsWith("<") ? ">" : "";
          picture = [found[0].slice(found[0].toLowerCase().indexOf("data:"))];
          held = held.slice(found.index + found[0].length);
          continue;
        }
        const waiting = isEnd ? "" : (MAYBE_PICTURE.exec(held)?.[0] ?? "");
        said += held.slice(0, held.length - waiting.length);
        held = waiting;
        break;
      }
      if (isEnd && picture !== undefined) finish(pictures);
      return { said, pictures };
    },
  };
}
