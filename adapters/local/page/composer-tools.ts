import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import type { Actions } from "./actions.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import { type Place, type State, stoppableAt, writingAt } from "./state.ts";
import { addFiles } from "./uploads.ts";

/** There is something to send; files that are still on their way are waited for. */
export function canSend(place: Place, state: State): boolean {
  const { text, uploads, picture } = writingAt(state, place);
  if (!state.isReady || isTooLong(text, state)) return false;
  return text.trim() !== "" || (picture === undefined && uploads.some(({ problem }) => problem === ""));
}

function isTooLong(text: string, { hello }: State): boolean {
  return text.length > (hello?.maxTextLength ?? Infinity);
}

export function sendView(place: Place, state: State, actions: Actions): TemplateResult {
  const stop = html`<button type="button" class="stop-all" aria-label="Stop the answer" title="Stop (Escape)"
    @click=${() => actions.stopAt(place)}>${ICONS.stop}</button>`;
  const { isWaiting, text, picture } = writingAt(state, place);
  const verb = picture === undefined ? "Send" : "Draw";
  return html`${isTooLong(text, state) ? tooLongView(text, state) : nothing} ${isWaiting ? html`<span class="file-wait" role="status">Sending when the files are there…</span>` : nothing}
    ${stoppableAt(state, place) === undefined ? nothing : stop}
    <button type="button" class="send" aria-label=${verb} title="${verb} (Enter)" ?disabled=${!canSend(place, state)}
      @click=${() => actions.send(place)}>${ICONS.send}</button>`;
}

function tooLongView({ length }: string, { hello }: State): TemplateResult {
  const most = hello?.maxTextLength ?? 0;
  return html`<span class="too-long" role="status">${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters</span>`;
}

/** Opens and closes the form for a picture. */
export function pictureButtonView(place: Place, state: State, actions: Actions): TemplateResult | typeof nothing {
  if (state.hello?.canDraw !== true) return nothing;
  const isOpen = writingAt(state, place).picture !== undefined;
  const toggle = () => {
    if (!actions.closePicture(place)) actions.openPicture(place);
  };
  return html`<button type="button" class="draw" aria-label="Draw a picture" title="Draw a picture (/imagine)"
    aria-pressed=${isOpen} @click=${toggle}>${ICONS.picture}</button>`;
}

export function attachView(place: Place, state: State, actions: Actions): TemplateResult {
  const onChange = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
    addFiles([...(currentTarget.files ?? [])], place, state, actions);
    currentTarget.value = "";
  };
  return html`<label class="attach" title="Attach files (or paste or drop them)">
    ${ICONS.attach}<input type="file" multiple class="unseen" aria-label="Attach files" @change=${onChange} />
  </label>`;
}

export function speakerView({ people, speakerId }: State, actions: Actions): TemplateResult {
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
