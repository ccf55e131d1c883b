import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { isForInputMethod } from "./keys.ts";
import type { MessageRow } from "./wire.ts";

type Key = KeyboardEvent & { currentTarget: HTMLTextAreaElement };

/** A message as its author changes it, in its place. */
export function editView(message: MessageRow, actions: Actions): TemplateResult {
  const onKeyDown = (event: Key) => {
    if (isForInputMethod(event)) return;
    const isSave = event.key === "Enter" && !event.shiftKey;
    if (!isSave && event.key !== "Escape") return;
    event.preventDefault();
    const { currentTarget: field } = event;
    if (isSave && field.value.trim() === "") return;
    void leave(field, isSave ? actions.edit(message, field.value) : actions.cancelEdit());
  };
  return html`<div class="editing">
    <textarea class="edit" aria-label="Edit the message" .value=${message.text} ${ref(begin)} @keydown=${onKeyDown}></textarea>
    <p class="hint">Enter saves · Escape cancels</p>
  </div>`;
}

/** The message may be out of sight, or out of the keyboard's reach. */
function begin(element: Element | undefined): void {
  if (!(element instanceof HTMLTextAreaElement)) return;
  requestAnimationFrame(() => {
    element.focus();
    element.setSelectionRange(element.value.length, element.value.length);
    element.scrollIntoView({ block: "nearest" });
  });
}

/** Gives the keyboard back to the composer that belongs to the message. */
async function leave(field: HTMLTextAreaElement, finished: Promise<boolean>): Promise<void> {
  const composer = field.closest(".pane")?.querySelector<HTMLTextAreaElement>(".composer textarea");
  if (await finished) composer?.focus();
}
