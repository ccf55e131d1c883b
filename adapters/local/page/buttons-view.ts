import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { askToChoose } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import type { State } from "./state.ts";
import type { ButtonRow, MessageRow } from "./wire.ts";

const BUTTON_ICONS: Record<ButtonRow["action"], TemplateResult> = {
  stop: ICONS.stop,
  retry: ICONS.retry,
  continue: ICONS.continue,
  good: ICONS.good,
  bad: ICONS.bad,
  again: ICONS.retry,
  vary: ICONS.vary,
  edit: ICONS.edit,
  upscale: ICONS.enlarge,
  delete: ICONS.trash,
};

/** Buttons that the bot put under its message. Judgements are small and stay pressed. */
export function buttonsView(message: MessageRow, state: State, actions: Actions): TemplateResult | typeof nothing {
  if (message.buttons.length === 0) return nothing;
  return html`<div class="buttons">
    ${message.buttons.map((button) => {
      const { action, label } = button;
      if (action === "good" || action === "bad") return judgementView(button, message, state, actions);
      return html`<button type="button" class=${action} @click=${() => press(button, message, actions)}>
        ${BUTTON_ICONS[action]}<span>${label}</span>
      </button>`;
    })}
  </div>`;
}

function judgementView(button: ButtonRow, message: MessageRow, state: State, actions: Actions): TemplateResult {
  const { action, label } = button;
  const isPressed = message.judgements[state.speakerId] === action;
  const judge = () => {
    if (!isPressed) actions.press(message, button);
  };
  return html`<button type="button" class="judgement ${action}" aria-label=${label} title=${label}
    aria-pressed=${isPressed} @click=${judge}>${BUTTON_ICONS[action]}</button>`;
}

function press(button: ButtonRow, message: MessageRow, actions: Actions): void {
  if (button.action === "edit") return void actions.editPicture(message, button.turnId);
  if (button.action !== "delete") return actions.press(message, button);
  askToChoose("Delete this picture?", "It cannot be brought back.", [
    { label: "Delete", run: () => actions.press(message, button) },
  ]);
}
