import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { type Completer, createCompleter } from "./completion.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import { isForInputMethod } from "./keys.ts";
import { picturePanelView } from "./picture-panel.ts";
import { isChat, messagesAt, type Place, placeKey, type State, stoppableAt, writingAt } from "./state.ts";
import { addFiles, uploadsView } from "./uploads.ts";

export interface Composer {
  view: (place: Place, state: State, actions: Actions) => TemplateResult;
  focus: () => void;
}

/** The field to write in. Keys that belong to an input method's own choosing are left alone. */
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

/** There is something to send; files that are still on their way are waited for. */
function canSend(place: Place, state: State): boolean {
  const { text, uploads, picture } = writingAt(state, place);
  if (isTooLong(text, state)) return false;
  return text.trim() !== "" || (picture === undefined && uploads.some(({ problem }) => problem === ""));
}

function isTooLong(text: string, { hello }: State): boolean {
  return text.length > (hello?.maxTextLength ?? Infinity);
}

function sendView(place: Place, state: State, actions: Actions): TemplateResult {
  const stop = html`<button type="button" class="stop-all" aria-label="Stop the answer" title="Stop (Escape)"
    @click=${() => actions.stopAt(place)}>${ICONS.stop}</button>`;
  const { isWaiting, text, picture } = writingAt(state, place);
  const verb = picture === undefined ? "Send" : "Draw";
  return html`${isTooLong(text, state) ? tooLongView(text, state) : nothing} ${isWaiting ? html`<span class="file-wait" role="status">Sending when ${state.isReady ? "the files are there" : "the page is connected"}…</span>` : nothing}
    ${stoppableAt(state, place) === undefined ? nothing : stop}
    <button type="button" class="send" aria-label=${verb} title="${verb} (Enter)" ?disabled=${!canSend(place, state)}
      @click=${() => actions.send(place)}>${ICONS.send}</button>`;
}

function tooLongView({ length }: string, { hello }: State): TemplateResult {
  const most = hello?.maxTextLength ?? 0;
  return html`<span class="too-long" role="status">${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters</span>`;
}

/** Opens and closes the form for a picture. */
function pictureButtonView(place: Place, state: State, actions: Actions): TemplateResult | typeof nothing {
  if (state.hello?.canDraw !== true) return nothing;
  const isOpen = writingAt(state, place).picture !== undefined;
  const toggle = () => {
    if (!actions.closePicture(place)) actions.openPicture(place);
  };
  return html`<button type="button" class="draw" aria-label="Draw a picture" title="Draw a picture (/imagine)"
    aria-pressed=${isOpen} @click=${toggle}>${ICONS.picture}</button>`;
}

function attachView(place: Place, state: State, actions: Actions): TemplateResult {
  const onChange = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    addFiles([...(currentTarget.files ?? [])], place, state, actions);
    currentTarget.value = "";
  };
  return html`<label class="attach" title="Attach files (or paste or drop them)">
    ${ICONS.attach}<input type="file" multiple class="unseen" aria-label="Attach files" @change=${onChange} />
  </label>`;
}

function speakerView({ people, speakerId }: State, actions: Actions): TemplateResult {
  const onChange = async ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) => {
    if (currentTarget.value !== "") return actions.speakAs(currentTarget.value);
    currentTarget.value = speakerId;
    askForName({ title: "Speak as somebody else", label: "Name", verb: "Add" }, actions.addPerson);
  };
  return html`<label class="speaker" title="Whom you speak as">
    <span class="unseen">Speak as</span>
    <select .value=${live(speakerId)} @change=${onChange}>
      ${[...people.values()].map(({ id, name }) => html`<option value=${id} ?selected=${id === speakerId}>${name}</option>`)}
      <option value="">Somebody else…</option>
    </select>
  </label>`;
}
