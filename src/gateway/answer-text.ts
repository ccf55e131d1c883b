import type { ChunkChoice } from "./chunks.ts";

/**
 * Cleans the text of one answer, however it is split into deltas: removes repeated beginnings, moves tagged thoughts to
 * `reasoning`, and moves pictures written as data URLs to `pictures`.
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
    /** Changes the choice in place. Text that can be the start of a tag or a picture waits for the next delta. */
    apply({ index, delta, finish_reason }: ChunkChoice): void {
      if (index !== 0) return;
      const { content } = delta;
      // Some gateways send a finish reason with every piece of text, so only a reason without text ends the answer.
      const isEnd = delta.tool_calls !== undefined || (Boolean(finish_reason) && !content);
      if (!content && !isEnd) return;
      const taken = take(content ?? "", isEnd);
      if (taken.thought !== "") delta.reasoning = (delta.reasoning ?? "") + taken.thought;
      if (taken.said !== "" || content !== undefined) delta.content = taken.said;
      if (taken.pictures.length > 0) delta.pictures = [...(delta.pictures ?? []), ...taken.pictures];
    },
    /** Returns the text and pictures that are still waiting at the end; "" for most answers. */
    rest(): { content: string; pictures: string[] } {
      const { said, pictures } = take("", true);
      return { content: said, pictures };
    },
  };
}

/**
 * With fewer deltas or characters, a growing repetition can be a coincidence: many tables begin with "-", "--", "----".
 */
const MIN_REPEATS = 4;
const MIN_REPEATED_CHARS = 16;

/**
 * Removes repetition if each delta repeats all of the text so far. The gateway is not repeating if one delta does not
 * start with the previous one. Until that is known, the text waits.
 */
function createRepeatFilter() {
  let state: "open" | "repeats" | "plain" = "open";
  /** The deltas so far, while each one starts with the one before. */
  let deltas: string[] = [];
  let text = "";

  function decide(isRepeated: boolean): string {
    const [first = "", ...rest] = deltas;
    const whole = isRepeated ? (deltas.at(-1) ?? "") : deltas.join("");
    state = isRepeated ? "repeats" : "plain";
    text = whole;
    deltas = [];
    // The first delta has already been shown.
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

/** Models put their thoughts in these tags. */
const OPENINGS = ["<think>", "<thinking>", "<thought>", "<reasoning>"];
const LONGEST_OPENING = Math.max(...OPENINGS.map((tag) => tag.length));
/** A tag after more white space than this counts as text. */
const MAX_HELD_CHARS = 64;

/**
 * Only tags at the start of the answer count, but there can be several. A closing tag without an opening tag stays in
 * the text, because it is unknown where the thought starts. If an opening tag is never closed, all text after it is a
 * thought.
 */
function createThoughtFilter() {
  let closing: string | undefined;
  let held = "";
  let hasThought = false;
  let isAnswer = false;

  /** Checks how `held` starts. A tag is removed; text starts the answer; for anything else, more text is needed. */
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

  /** Removes the thought from the front of `held`. Leaves the end if it can be the start of the closing tag. */
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

/** Maximum number of pictures per answer; further ones are left out. */
const MAX_PICTURES = 8;
/** The start of a picture, alone or in Markdown or HTML. */
const PICTURE =
  /(?:!\[[^\]\n]{0,200}\]\(\s{0,20}<?|<img [^>\n]{0,200}?src=["']?)?data:image\/[a-z0-9.+-]{1,40};base64,/i;
/** The end of a text if it can be the start of a data URL. */
const MAYBE_DATA = `(?:${optional("data:image/")}|data:image/[a-z0-9.+-]{1,40}(?:;b?a?s?e?6?4?)?)`;
const MAYBE_PICTURE = new RegExp(
  `(?:!(?:\\[[^\\]\\n]{0,200}(?:\\](?:\\(\\s{0,20}<?${MAYBE_DATA}?)?)?)?|<(?:i(?:m(?:g(?: [^>\\n]{0,260})?)?)?)?|${MAYBE_DATA})$`,
  "i",
);
/** Limit for the Markdown or HTML after a picture, such as a title. */
const MAX_CLOSING_CHARS = 200;
const NO_BASE64 = /[^A-Za-z0-9+/=]/;
/** A cheap test for every delta: without a match, no picture starts in the text or at its end. */
const MAY_BEGIN = /data:|!\[|<i|(?:d|da|dat|data|!|<)$/i;

/** A pattern that matches every beginning of a word. */
function optional(word: string): string {
  const [first = "", ...rest] = word;
  return rest.length === 0 ? first : `${first}(?:${optional(rest.join(""))})?`;
}

/** Removes pictures written as base64 from the text. */
function createPictureFilter() {
  let held = "";
  /** The parts of the data URL that is being read. */
  let picture: string[] | undefined;
  /** The Markdown or HTML that is still expected after the latest picture. */
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
      // Almost all deltas end here.
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
