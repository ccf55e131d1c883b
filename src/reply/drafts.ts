import type { Button, Draft, OutboundFile, SinkLimits, Step } from "../port/sink.ts";
import { HEAL_ROOM, healMarkdown } from "../text/heal.ts";
import { neutralize } from "../text/neutralize.ts";
import type { Part } from "../text/split.ts";
import { createRest } from "./rest.ts";
import type { Sealed } from "./sealed.ts";
import { createPlacedSteps } from "./steps.ts";

/** What stands under the text when the turn is over. */
export interface Closing {
  note: string;
  buttons: Button[];
}

/** What the messages of one reply should show. */
export interface ReplyDrafts {
  append(text: string): void;
  /** Text so far, as the model wrote it. */
  readonly text: string;
  /** No more text comes. */
  /** Stands there until there is text; "" for nothing. */
  wait(note: string): void;
  end(closing: Closing): void;
  /** From this message on the platform does not take the text: the refusal stands in its place, and ends the reply. */
  reject(index: number): void;
  /** The platform does not take the file: the answer comes in as many messages as it needs. */
  rejectFile(): void;
  /** It is there: only now is that said. */
  noteFile(): void;
  readonly isOver: boolean;
  readonly isRejected: boolean;
  /** What the messages behind those that are sealed should show; without any of those, all of them. */
  render(): Draft[];
  /** The messages up to this one stay as they are and show the text so far: what follows begins behind it. */
  seal(count: number, shown: number): Sealed;
  /** Where in the shown text a draft that was rendered begins and ends. */
  placeOf(draft: Draft): { start: number; end: number };
  /** Where so much of the source of a draft ends. */
  placeAt(draft: Draft, length: number): number;
  /** The whole answer, once it is over and its messages could not hold it. */
  file(): OutboundFile | undefined;
}

const WILL_COME = "_This is longer than fits here; the whole answer will come as a file._";
const HAS_COME = "_The whole answer is in the attached file._";
const WAS_ALL = "_That was the whole answer: the message with the end of it cannot be changed any more._";

/**
 * `stepsToShow` is undefined where the platform shows none any more: what it has shown then stays as it was. `before` is
 * what an earlier run left in messages that stay as they are.
 */
export function createReplyDrafts(
  turnId: string,
  limits: SinkLimits,
  refusal: Closing,
  stepsToShow: () => readonly Step[] | undefined = () => undefined,
  before?: Sealed,
): ReplyDrafts {
  const { maxLength, lengthOf, keptLength, maxMessages = Infinity } = limits;
  // Room for healing is kept also when nothing is to heal: a draft must never need more messages than the final text.
  const rest = createRest({ maxLength: maxLength - HEAL_ROOM, lengthOf, keptLength }, before);
  let placed = createPlacedSteps();
  let text = "";
  let ending: Closing | undefined;
  let waiting = "";
  let rejectedIndex: number | undefined;
  let isTooLong = false;
  let file: "due" | "there" | "refused" = "due";

  function toDraft({ text: markdown, closingLength }: Part, isLast: boolean): Draft {
    if (!isLast) return { markdown, buttons: [], streaming: false };
    if (ending !== undefined) return { markdown, buttons: ending.buttons, streaming: false };
    const stop: Button = { action: "stop", turnId, label: "Stop" };
    const source = markdown.slice(0, markdown.length - closingLength);
    return { markdown: healMarkdown(markdown), source, buttons: [stop], streaming: true };
  }

  /** No part of the text, so that it is written in a way that takes it back. */
  function toWaiting(): Draft {
    return { markdown: waiting, buttons: [{ action: "stop", turnId, label: "Stop" }], streaming: false };
  }

  function toNote(body: string): string {
    const note = neutralize(ending?.note ?? "");
    // Otherwise nothing would tell that no more comes, and the buttons of the end would have no message.
    return note === "" && ending !== undefined && rest.isEmpty(body) ? WAS_ALL : note;
  }

  return {
    append: (more) => void (text += more),
    get text() {
      return text;
    },
    wait: (note) => void (waiting = note),
    end: (closing) => void (ending = closing),
    reject: (index) => void (rejectedIndex = index),
    rejectFile: () => void (file = "refused"),
    noteFile: () => void (file = "there"),
    get isOver() {
      return ending !== undefined || rejectedIndex !== undefined;
    },
    get isRejected() {
      return rejectedIndex !== undefined;
    },
    seal(count, shown) {
      placed = createPlacedSteps();
      if (rejectedIndex !== undefined) rejectedIndex = 0;
      return rest.seal(neutralize(text).trimEnd(), count, shown);
    },
    placeOf: rest.placeOf,
    placeAt: rest.placeAt,
    render() {
      const body = neutralize(text).trimEnd();
      if (waiting !== "" && body === "" && ending === undefined) return [toWaiting()];
      if (!rest.isDecided(body, ending !== undefined)) return [];
      const note = toNote(body);
      const whole = note === "" ? body : [closeFence(body), note].filter(Boolean).join("\n\n");
      const parts = rest.split(whole, ending !== undefined).filter((part) => part.text.trim() !== "");
      isTooLong = file !== "refused" && parts.length > maxMessages;
      const shown = isTooLong ? parts.slice(0, maxMessages) : parts;
      const word = file === "there" ? HAS_COME : WILL_COME;
      const promise = [word, note].filter(Boolean).join("\n\n");
      const end = parts[shown.length]?.start ?? whole.length;
      if (isTooLong) shown.push({ text: promise, start: end, end, closingLength: 0 });
      if (shown.length > 0) placed.place(stepsToShow() ?? [], shown.length - 1);
      const drafts = shown.map((part, index) => {
        const draft = withSteps(toDraft(part, index === shown.length - 1), placed.of(index));
        rest.place(draft, part, whole);
        return draft;
      });
      if (rejectedIndex === undefined) return drafts;
      const { note: markdown, buttons } = refusal;
      return [...drafts.slice(0, rejectedIndex), { markdown, buttons, streaming: false }];
    },
    file() {
      if (!isTooLong || ending === undefined || rejectedIndex !== undefined) return undefined;
      const bytes = new TextEncoder().encode(`${neutralize(text).trimEnd()}\n`);
      return { name: "answer.md", contentType: "text/markdown", bytes };
    },
  };
}

function withSteps(draft: Draft, steps: readonly Step[]): Draft {
  return steps.length === 0 ? draft : { ...draft, steps };
}

/** Ends code that was left open, so that what stands under it is no part of it. */
function closeFence(body: string): string {
  // Only inside a fence does healing add a line after a further one, and nothing of what is there is touched.
  const probe = `${body}\nx`;
  const healed = healMarkdown(probe);
  return body + (healed.startsWith(`${probe}\n`) ? healed.slice(probe.length) : "");
}
