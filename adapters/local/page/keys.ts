import type { Actions } from "./actions.ts";
import type { State } from "./state.ts";

/** Key code of a key that an input method takes for itself, in browsers that do not say `isComposing` with it. */
const INPUT_METHOD_KEY = 229;

/** Such a key chooses among spellings; it must not send or close anything. */
export function isForInputMethod(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === INPUT_METHOD_KEY;
}

/** Keys that work everywhere on the page. */
export function listenToKeys(state: State, actions: Actions): void {
  addEventListener("keydown", (event) => {
    if (isForInputMethod(event) || event.defaultPrevented) return;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      actions.change((changing) => void (changing.isSwitcherOpen = !changing.isSwitcherOpen));
    }
    if (event.key === "Escape" && document.querySelector("dialog[open]") === null) leave(state, actions);
  });
}

/** Escape ends one thing at a time: what lies on top first, then the answer being written, then the thread. */
function leave(state: State, actions: Actions): void {
  const { view } = state;
  if (state.isSwitcherOpen) actions.change((changing) => void (changing.isSwitcherOpen = false));
  else if (state.editingId !== undefined) actions.change((changing) => void (changing.editingId = undefined));
  else if (state.isDrawerOpen) actions.change((changing) => void (changing.isDrawerOpen = false));
  else if (actions.closePicture(view)) return;
  else if (actions.stopAt(view)) return;
  else if (view.threadId !== null) actions.go({ channelId: view.channelId, threadId: null });
}
