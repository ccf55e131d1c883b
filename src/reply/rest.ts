import type { Draft } from "../port/sink.ts";
import { createSplitter, type Part, type SplitLimits } from "../text/split.ts";
import { findEndOf, findPlaceAt, findPlaceBehind, type Sealed, toTextMark } from "./sealed.ts";

/** What of a growing text is to be shown: all of it, or what stands behind the messages that take no changes any more. */
export interface Rest {
  /** Takes in the text so far. False while it is not known where it goes on. */
  isDecided(body: string, isOver: boolean): boolean;
  /** `isOver`: no more of it comes. */
  split(whole: string, isOver: boolean): Part[];
  /** Whether there is nothing left behind what is sealed. */
  isEmpty(body: string): boolean;
  /** The messages up to this one stay as they are and show so much of the text. */
  seal(body: string, count: number, shown: number): Sealed;
  /** Notes what a draft was made of. */
  place(draft: Draft, part: Part, whole: string): void;
  /** Where in the text a draft begins, and what it shows ends. */
  placeOf(draft: Draft): { start: number; end: number };
  /** Where so much of the source of a draft ends. */
  placeAt(draft: Draft, length: number): number;
}

/** `before` is what an earlier run left in messages that stay as they are. */
export function createRest(limits: SplitLimits, before: Sealed | undefined): Rest {
  let splitter = createSplitter(limits);
  let undecided = before;
  let from = 0;
  const places = new WeakMap<Draft, { part: Part; whole: string }>();

  function goOnBehind(place: number): void {
    undecided = undefined;
    from = place;
    splitter = createSplitter(limits, from);
  }

  return {
    isDecided(body, isOver) {
      if (undecided === undefined) return true;
      if (body.length < undecided.shown && !isOver) return false;
      goOnBehind(findPlaceBehind(body, undecided));
      return true;
    },
    split: (whole, isOver) => splitter.update(whole, isOver),
    isEmpty: (body) => from > 0 && body.slice(from).trim() === "",
    seal(body, count, shown) {
      goOnBehind(shown);
      return { count, shown, mark: toTextMark(body.slice(0, shown)) };
    },
    place: (draft, part, whole) => void places.set(draft, { part, whole }),
    placeOf(draft) {
      const place = places.get(draft);
      if (place === undefined) return { start: from, end: from };
      return { start: place.part.start, end: findEndOf(draft, place.part, place.whole) };
    },
    placeAt(draft, length) {
      const place = places.get(draft);
      return place === undefined ? from : findPlaceAt(draft, place.part, place.whole, length);
    },
  };
}
