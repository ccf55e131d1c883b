import type { Actions } from "./actions.ts";
import type { State } from "./state.ts";

/** The code of a key that an input method handles, in browsers that do not set `isComposing`. */
const INPUT_METHOD_KEY = 229;

/** True for a key that an input method uses. Such a key must not send or close anything. */
export function isForInputMethod(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === INPUT_METHOD_KEY;
}

export function listenToKeys(state: State, actions: Actions): void {
  addEventListener("keydown", (event) => {
    if (isForInputMethod(event) || event.defaultPrevented) return;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      search(actions);
    }
    if (event.key === "Escape" && document.querySelector("dialog[open]") === null) leave(state, actions);
  });
}

/** Moves the focus to the search field, which a phone shows in the drawer. */
function search(actions: Actions): void {
  const isDrawer = document.querySelector(".menu")?.checkVisibility() === true;
  actions.change((state) => void (state.isDrawerOpen = isDrawer));
  requestAnimationFrame(() => document.querySelector<HTMLInputElement>(".search input")?.focus());
}

/** Each Escape closes the topmost open element. If nothing is open, Escape stops the growing answer. */
function leave(state: State, actions: Actions): void {
  const { chatId } = state;
  if (state.query !== "") actions.change((changing) => void (changing.query = ""));
  else if (state.isDrawerOpen) actions.change((changing) => void (changing.isDrawerOpen = false));
  else if (state.editingId !== undefined) actions.change((changing) => void (changing.editingId = undefined));
  else if (!actions.closePicture(chatId)) actions.stopAt(chatId);
}
