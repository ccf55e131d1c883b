import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import type { Actions } from "./actions.ts";
import { ICONS } from "./icons.ts";
import type { PictureForm } from "./picture-form.ts";
import { type State, writingAt } from "./state.ts";

export function picturePanelView(chatId: string, state: State, actions: Actions): TemplateResult | typeof nothing {
  const { picture, uploads } = writingAt(state, chatId);
  if (picture === undefined) return nothing;
  const { ratios = [], sizes = [], models = [], maxCount = 1, maxReferences = 0 } = state.menu ?? {};
  const choose = (changes: Partial<PictureForm>) => actions.choose(chatId, changes);
  const counts = Array.from({ length: maxCount }, (_, index) => String(index + 1));
  const count = uploads.length + (picture.basis === undefined ? 0 : 1);
  return html`<div class="picture-panel" role="group" aria-label="Picture to draw">
    <header>
      ${ICONS.picture}<b>${picture.basis === undefined ? "Create an image" : "Change an image"}</b>
      <button type="button" aria-label="Close the image form" title="Close (Escape)" @click=${() => actions.closePicture(chatId)}>
        ${ICONS.close}
      </button>
    </header>
    <div class="picture-choices">
      ${selectView("Shape", picture.ratio, withAny(ratios), (ratio) => choose({ ratio }))}
      ${selectView("Size", picture.size, withAny(sizes), (size) => choose({ size }))}
      ${selectView("Pictures", picture.count, plain(counts), (value) => choose({ count: value }))}
      ${models.length === 0 ? nothing : selectView("Model", picture.model || (models[0] ?? ""), plain(models), (model) => choose({ model }))}
      <label class="picture-cover">
        <input type="checkbox" .checked=${live(picture.isSpoiler)}
          @change=${({ currentTarget }: Changed<HTMLInputElement>) => choose({ isSpoiler: currentTarget.checked })} />
        Cover it
      </label>
    </div>
    <p class="hint ${count > maxReferences && maxReferences > 0 ? "over" : ""}">${describeReferences(count, maxReferences)}</p>
  </div>`;
}

export function basisView(chatId: string, state: State, actions: Actions): TemplateResult | typeof nothing {
  const { basis } = writingAt(state, chatId).picture ?? {};
  if (basis === undefined) return nothing;
  return html`<li class="basis" title=${basis.file.altText ?? basis.file.name}>
    <img src="/local/files/${basis.file.id}" alt="" /><span>This picture</span>
    <button type="button" aria-label="Do not start from this picture" @click=${() => actions.choose(chatId, { basis: undefined })}>
      ${ICONS.close}
    </button>
  </li>`;
}

type Changed<T> = Event & { currentTarget: T };

interface Option {
  value: string;
  label: string;
}

function selectView(label: string, value: string, options: Option[], choose: (value: string) => void): TemplateResult {
  // Keeps the option of an older image even if it is no longer offered.
  const all = options.some((option) => option.value === value)
    ? options
    : [...options, { value, label: value || "any" }];
  return html`<label>
    <span>${label}</span>
    <select .value=${live(value)} @change=${({ currentTarget }: Changed<HTMLSelectElement>) => choose(currentTarget.value)}>
      ${all.map((option) => html`<option value=${option.value} ?selected=${option.value === value}>${option.label}</option>`)}
    </select>
  </label>`;
}

function plain(values: readonly string[]): Option[] {
  return values.map((value) => ({ value, label: value }));
}

function withAny(values: readonly string[]): Option[] {
  return [{ value: "", label: "any" }, ...plain(values)];
}

function describeReferences(count: number, maxReferences: number): string {
  if (maxReferences === 0) return "";
  if (count === 0) return `Attach up to ${maxReferences} images to start from.`;
  if (count > maxReferences) return `${count} images are attached; I can use at most ${maxReferences}.`;
  return `Starts from ${count === 1 ? "the attached image" : `the ${count} attached images`}.`;
}
