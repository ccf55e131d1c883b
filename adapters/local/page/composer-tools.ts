import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import type { Actions } from "./actions.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import { type Place, type State, stoppableAt, writingAt } from "./state.ts";
import { addFiles } from "./uploads.ts";

/** There is something to send; files that are still on their way are waited for. */
export function canSend(place: Place, state: State): boolean {
  const { text, uploads } = writingAt(state, place);
  return state.isReady && (text.trim() !== "" || uploads.some(({ problem }) => problem === ""));
}

export function sendView(place: Place, state: State, actions: Actions): TemplateResult {
  const stop = html`<button type="button" class="stop-all" aria-label="Stop the answer" title="Stop (Escape)"
    @click=${() => actions.stopAt(place)}>${ICONS.stop}</button>`;
  const { isWaiting } = writingAt(state, place);
  return html`${isWaiting ? html`<span class="waiting" role="status">Sending when the files are there…</span>` : nothing}
    ${stoppableAt(state, place) === undefined ? nothing : stop}
    <button type="button" class="send" aria-label="Send" title="Send (Enter)" ?disabled=${!canSend(place, state)}
      @click=${() => actions.send(place)}>${ICONS.send}</button>`;
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
    askForName("Speak as somebody else", "Name", actions.addPerson);
  };
  return html`<label class="speaker" title="Whom you speak as">
    <span class="unseen">Speak as</span>
    <select .value=${live(speakerId)} @change=${onChange}>
      ${[...people.values()].map(({ id, name }) => html`<option value=${id} ?selected=${id === speakerId}>${name}</option>`)}
      <option value="">Somebody else…</option>
    </select>
  </label>`;
}
