import { html, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { type Completer, createCompleter } from "./completion.ts";
import { attachView, canSend, pictureButtonView, sendView, speakerView } from "./composer-tools.ts";
import { isForInputMethod } from "./keys.ts";
import { picturePanelView } from "./picture-panel.ts";
import { isChat, messagesAt, type Place, placeKey, type State, writingAt } from "./state.ts";
import { addFiles, uploadsView } from "./uploads.ts";

export interface Composer {
  view: (place: Place, state: State, actions: Actions) => TemplateResult;
  focus: () => void;
}

/** Where one writes. Keys that belong to an input method's own choosing are left alone. */
export function createComposer(): Composer {
  const completer = createCompleter();
  let field: HTMLTextAreaElement | undefined;
  let shownAt = "";
  const attach = (element: Element | undefined) => void (field = element as HTMLTextAreaElement | undefined);

  return {
    focus: () => field?.focus(),
    view(place, state, actions) {
      if (shownAt !== placeKey(place)) completer.close();
      shownAt = placeKey(place);
      return html`<form class="composer" @submit=${(event: Event) => event.preventDefault()}>
        ${completer.view(field, (text) => actions.write(place, { text }))} ${picturePanelView(place, state, actions)}
        ${uploadsView(place, state, actions)}
        ${fieldView(attach, completer, place, state, actions)}
        <div class="composer-row">
          ${attachView(place, state, actions)} ${pictureButtonView(place, state, actions)} ${speakerView(state, actions)}
          <span class="grow"></span>
          ${sendView(place, state, actions)}
        </div>
      </form>`;
    },
  };
}

type Field = Event & { currentTarget: HTMLTextAreaElement };

function fieldView(
  attach: (element: Element | undefined) => void,
  completer: Completer,
  place: Place,
  state: State,
  actions: Actions,
): TemplateResult {
  const onInput = ({ currentTarget }: Field) => {
    // The words of a picture are no command.
    if (writingAt(state, place).picture === undefined) completer.look(currentTarget, state);
    actions.write(place, { text: currentTarget.value });
  };
  const isPicture = writingAt(state, place).picture !== undefined;
  return html`<textarea
    ${ref(attach)}
    rows="1" dir="auto" aria-label=${isPicture ? "What to draw" : "Message"} placeholder=${placeholderAt(place, state)} enterkeyhint="send"
    role="combobox" aria-autocomplete="list" aria-expanded=${completer.isOpen()} aria-controls="completion"
    aria-activedescendant=${completer.activeId()}
    .value=${live(writingAt(state, place).text)}
    @input=${onInput}
    @paste=${(event: ClipboardEvent & Field) => onPaste(event, place, state, actions)}
    @blur=${completer.close}
    @keydown=${(event: KeyboardEvent & Field) => onKeyDown(event, completer, place, state, actions)}
  ></textarea>`;
}

function onKeyDown(
  event: KeyboardEvent & Field,
  completer: Completer,
  place: Place,
  state: State,
  actions: Actions,
): void {
  const { key, shiftKey, currentTarget: field } = event;
  if (isForInputMethod(event)) return;
  if (!shiftKey && completer.takeKey(key, field, (text) => actions.write(place, { text }))) {
    event.preventDefault();
    actions.change(() => undefined);
  } else if (key === "Enter" && !shiftKey) {
    event.preventDefault();
    completer.close();
    if (canSend(place, state)) actions.send(place);
  } else if (key === "ArrowUp" && field.value === "") {
    event.preventDefault();
    editLast(place, state, actions);
  }
}

function onPaste(event: ClipboardEvent & Field, place: Place, state: State, actions: Actions): void {
  const files = [...(event.clipboardData?.files ?? [])];
  const text = event.clipboardData?.getData("text/plain") ?? "";
  const { value, selectionStart, selectionEnd } = event.currentTarget;
  const most = state.hello?.maxTextLength ?? Infinity;
  if (files.length === 0 && value.length - (selectionEnd - selectionStart) + text.length > most) {
    files.push(new File([text], "pasted.txt", { type: "text/plain" }));
    actions.notice(`A message has at most ${most.toLocaleString("en")} characters, so this is attached as a file.`);
  }
  if (files.length === 0) return;
  event.preventDefault();
  addFiles(files, place, state, actions);
}

function editLast(place: Place, state: State, actions: Actions): void {
  const own = messagesAt(state, place).findLast((each) => each.authorId === state.speakerId && !each.isCommand);
  if (own !== undefined) actions.change((changing) => void (changing.editingId = own.id));
}

function placeholderAt(place: Place, state: State): string {
  const bot = state.hello?.botName ?? "";
  const { picture } = writingAt(state, place);
  if (picture !== undefined) return picture.basis === undefined ? "Describe the picture" : "Say what to change";
  if (place.threadId !== null) return "Reply in the thread";
  if (isChat(state, place.channelId)) return `Write to ${bot}`;
  return `Write to #${state.channels.get(place.channelId)?.title ?? ""}, or mention @${bot}`;
}
