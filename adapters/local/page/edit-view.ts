import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { isForInputMethod } from "./keys.ts";
import type { MessageRow } from "./wire.ts";

type Key = KeyboardEvent & { currentTarget: HTMLTextAreaElement };

/** A message as its author changes it, in its place. By keys or by its buttons: a phone has no Escape. */
export function editView(message: MessageRow, actions: Actions): TemplateResult {
  const save = (field: HTMLTextAreaElement) => {
    if (field.value.trim() !== "") void leave(field, actions.edit(message, field.value));
  };
  const cancel = (field: HTMLTextAreaElement) => void leave(field, actions.cancelEdit());
  const onKeyDown = (event: Key) => {
    if (isForInputMethod(event)) return;
    const isSave = event.key === "Enter" && !event.shiftKey;
    if (!isSave && event.key !== "Escape") return;
    event.preventDefault();
    if (isSave) save(event.currentTarget);
    else cancel(event.currentTarget);
  };
  const withField = (run: (field: HTMLTextAreaElement) => void) => (event: Event) => {
    const field = (event.currentTarget as Element).closest(".editing")?.querySelector("textarea");
    if (field) run(field);
  };
  return html`<div class="editing">
    <textarea class="edit" dir="auto" aria-label="Edit the message" .value=${message.text} ${ref(begin)} @keydown=${onKeyDown}></textarea>
    <p class="edit-row">
      <span class="hint">Enter saves · Escape cancels</span>
      <button type="button" @click=${withField(cancel)}>Cancel</button>
      <button type="button" class="primary" @click=${withField(save)}>Save</button>
    </p>
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
