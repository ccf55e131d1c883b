import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { type Completer, createCompleter } from "./completion.ts";
import { ICONS } from "./icons.ts";
import { isForInputMethod } from "./keys.ts";
import { picturePanelView } from "./picture-panel.ts";
import { messagesAt, type State, stoppableAt, writingAt } from "./state.ts";
import { addFiles, uploadsView } from "./uploads.ts";

export interface Composer {
  view: (chatId: string, state: State, actions: Actions) => TemplateResult;
  focus: () => void;
}

/** The text field. Leaves keys alone that an input method uses. */
export function createComposer(): Composer {
  const completer = createCompleter();
  let field: HTMLTextAreaElement | undefined;
  let shownAt = "";
  const attach = (element: Element | undefined) => void (field = element as HTMLTextAreaElement | undefined);

  return {
    focus: () => field?.focus(),
    view(chatId, state, actions) {
      if (shownAt !== chatId) completer.close();
      shownAt = chatId;
      return html`<form class="composer" @submit=${(event: Event) => event.preventDefault()}>
        ${completer.view(field, (text) => actions.write(chatId, { text }))} ${picturePanelView(chatId, state, actions)}
        ${uploadsView(chatId, state, actions)}
        ${fieldView(attach, completer, chatId, state, actions)}
        <div class="composer-row">
          ${attachView(chatId, state, actions)} ${pictureButtonView(chatId, state, actions)}
          <span class="grow"></span>
          ${sendView(chatId, state, actions)}
        </div>
      </form>`;
    },
  };
}

type Field = Event & { currentTarget: HTMLTextAreaElement };

function fieldView(
  attach: (element: Element | undefined) => void,
  completer: Completer,
  chatId: string,
  state: State,
  actions: Actions,
): TemplateResult {
  const onInput = ({ currentTarget }: Field) => {
    // The description of an image is not a command.
    if (writingAt(state, chatId).picture === undefined) completer.look(currentTarget, state);
    actions.write(chatId, { text: currentTarget.value });
  };
  const isPicture = writingAt(state, chatId).picture !== undefined;
  return html`<textarea
    ${ref(attach)}
    rows="1" dir="auto" aria-label=${isPicture ? "Describe the image" : "Message"} placeholder=${placeholderAt(chatId, state)} enterkeyhint="send"
    role="combobox" aria-autocomplete="list" aria-expanded=${completer.isOpen()} aria-controls="completion"
    aria-activedescendant=${completer.activeId()}
    .value=${live(writingAt(state, chatId).text)}
    @input=${onInput}
    @paste=${(event: ClipboardEvent & Field) => onPaste(event, chatId, state, actions)}
    @blur=${completer.close}
    @keydown=${(event: KeyboardEvent & Field) => onKeyDown(event, completer, chatId, state, actions)}
  ></textarea>`;
}

function onKeyDown(
  event: KeyboardEvent & Field,
  completer: Completer,
  chatId: string,
  state: State,
  actions: Actions,
): void {
  const { key, shiftKey, currentTarget: field } = event;
  if (isForInputMethod(event)) return;
  if (!shiftKey && completer.takeKey(key, field, (text) => actions.write(chatId, { text }))) {
    event.preventDefault();
    actions.change(() => undefined);
  } else if (key === "Enter" && !shiftKey) {
    event.preventDefault();
    completer.close();
    if (canSend(chatId, state)) actions.send(chatId);
  } else if (key === "ArrowUp" && field.value === "") {
    event.preventDefault();
    editLast(chatId, state, actions);
  }
}

function onPaste(event: ClipboardEvent & Field, chatId: string, state: State, actions: Actions): void {
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
  addFiles(files, chatId, state, actions);
}

function editLast(chatId: string, state: State, actions: Actions): void {
  const own = messagesAt(state, chatId).findLast((each) => !each.isBot && !each.isCommand);
  if (own !== undefined) actions.change((changing) => void (changing.editingId = own.id));
}

function placeholderAt(chatId: string, state: State): string {
  const { picture } = writingAt(state, chatId);
  if (picture !== undefined) return picture.basis === undefined ? "Describe the image" : "Say what to change";
  return `Write to ${state.hello?.botName ?? ""}`;
}

/** True if there is something to send. Files that are still uploading count, because the message waits for them. */
function canSend(chatId: string, state: State): boolean {
  const { text, uploads, picture } = writingAt(state, chatId);
  if (isTooLong(text, state)) return false;
  return text.trim() !== "" || (picture === undefined && uploads.some(({ problem }) => problem === ""));
}

function isTooLong(text: string, { hello }: State): boolean {
  return text.length > (hello?.maxTextLength ?? Infinity);
}

function sendView(chatId: string, state: State, actions: Actions): TemplateResult {
  const stop = html`<button type="button" class="stop-all" aria-label="Stop the answer" title="Stop (Escape)"
    @click=${() => actions.stopAt(chatId)}>${ICONS.stop}</button>`;
  const { isWaiting, text, picture } = writingAt(state, chatId);
  const verb = picture === undefined ? "Send" : "Draw";
  return html`${isTooLong(text, state) ? tooLongView(text, state) : nothing} ${isWaiting ? html`<span class="file-wait" role="status">Sending once ${state.isReady ? "the files have uploaded" : "the page is connected"}…</span>` : nothing}
    ${stoppableAt(state, chatId) === undefined ? nothing : stop}
    <button type="button" class="send" aria-label=${verb} title="${verb} (Enter)" ?disabled=${!canSend(chatId, state)}
      @click=${() => actions.send(chatId)}>${ICONS.send}</button>`;
}

function tooLongView({ length }: string, { hello }: State): TemplateResult {
  const most = hello?.maxTextLength ?? 0;
  return html`<span class="too-long" role="status">${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters</span>`;
}

function pictureButtonView(chatId: string, state: State, actions: Actions): TemplateResult | typeof nothing {
  if (state.hello?.canDraw !== true) return nothing;
  const isOpen = writingAt(state, chatId).picture !== undefined;
  const toggle = () => {
    if (!actions.closePicture(chatId)) actions.openPicture(chatId);
  };
  return html`<button type="button" class="draw" aria-label="Create an image" title="Create an image (/imagine)"
    aria-pressed=${isOpen} @click=${toggle}>${ICONS.picture}</button>`;
}

function attachView(chatId: string, state: State, actions: Actions): TemplateResult {
  const onChange = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    addFiles([...(currentTarget.files ?? [])], chatId, state, actions);
    currentTarget.value = "";
  };
  return html`<label class="attach" title="Attach files (or paste or drop them)">
    ${ICONS.attach}<input type="file" multiple class="unseen" aria-label="Attach files" @change=${onChange} />
  </label>`;
}
