import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { formatSize } from "./format.ts";
import { ICONS } from "./icons.ts";
import { openLightbox } from "./lightbox.ts";
import { messagesAt, type State } from "./state.ts";
import type { FileRow } from "./wire.ts";

/** Files under a message: pictures to look at, side by side where there are several, everything else to be saved. */
export function filesView(files: readonly FileRow[], state: State, actions: Actions): TemplateResult | typeof nothing {
  if (files.length === 0) return nothing;
  const isGallery = files.filter(({ isImage }) => isImage).length > 1;
  return html`<div class="files ${isGallery ? "gallery" : ""}">
    ${files.map((file) => fileView(file, state, actions))}
  </div>`;
}

function fileView(file: FileRow, state: State, actions: Actions): TemplateResult {
  const url = `/local/files/${file.id}`;
  const title = `${file.name} · ${formatSize(file.sizeBytes)}`;
  if (!file.isImage) {
    return html`<a class="file" href=${url} download title=${title}>${ICONS.file}<span>${file.name}</span>
      <small>${formatSize(file.sizeBytes)}</small></a>`;
  }
  if (isCovered(file, state)) {
    return html`<button type="button" class="picture covered" @click=${() => actions.uncover(file.id)}>
      ${imageView(file, url, "")}<span class="cover">${ICONS.eye}Show the picture</span>
    </button>`;
  }
  const open = (event: MouseEvent) => {
    // A tab or a window of its own is asked for.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const shown = picturesAt(state);
    const at = shown.findIndex(({ id }) => id === file.id);
    if (at === -1) openLightbox([file], 0);
    else openLightbox(shown, at);
  };
  return html`<a class="picture" href=${url} target="_blank" rel="noopener" title=${title} @click=${open}>
    ${imageView(file, url, file.altText ?? file.name)}
  </a>`;
}

function imageView({ width, height }: FileRow, url: string, alt: string): TemplateResult {
  return html`<img src=${url} alt=${alt} width=${width ?? nothing} height=${height ?? nothing} loading="lazy" decoding="async" />`;
}

/** Everything one can look at where one is, in order. */
function picturesAt(state: State): FileRow[] {
  const files = messagesAt(state, state.view).flatMap((message) => message.files);
  return files.filter((file) => file.isImage && !isCovered(file, state));
}

function isCovered({ isSpoiler, id }: FileRow, { uncovered }: State): boolean {
  return isSpoiler && !uncovered.has(id);
}
