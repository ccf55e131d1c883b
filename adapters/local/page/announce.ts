import { messagesAt, nameOf, type State } from "./state.ts";

const MOST_CHARS = 300;
let spoken = "";

/** Tells a screen reader when an answer begins and reads it when it is whole, instead of every step of its growth. */
export function announce(state: State): void {
  const element = document.querySelector("#announcements");
  const last = messagesAt(state, state.view).at(-1);
  if (element === null || last === undefined || !state.isReady) return;
  const next = `${last.id}:${last.isStreaming}`;
  if (next === spoken) return;
  const isFirst = spoken === "";
  spoken = next;
  if (isFirst || last.authorId === state.speakerId) return;
  const name = nameOf(state, last.authorId);
  element.textContent = last.isStreaming ? `${name} is answering.` : `${name}: ${last.text.slice(0, MOST_CHARS)}`;
}
