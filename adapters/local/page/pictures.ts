import { html, nothing, render, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { formatSize } from "./format.ts";
import { ICONS } from "./icons.ts";
import { messagesAt, type State } from "./state.ts";
import type { FileRow } from "./wire.ts";

/** Images can be viewed, several of them side by side. Other files can be downloaded. */
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
      ${imageView(file, url, "")}<span class="cover">${ICONS.eye}Show the image</span>
    </button>`;
  }
  const open = (event: MouseEvent) => {
    // Lets the browser open a new tab or window.
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

function picturesAt(state: State): FileRow[] {
  const files = messagesAt(state, state.chatId).flatMap((message) => message.files);
  return files.filter((file) => file.isImage && !isCovered(file, state));
}

function isCovered({ isSpoiler, id }: FileRow, { uncovered }: State): boolean {
  return isSpoiler && !uncovered.has(id);
}

/**
 * Shows images in full size over the page, one at a time. Escape or a click next to the image closes it, arrow keys
 * move to the next image, and a click on the image switches between fit and actual size.
 */
function openLightbox(files: readonly FileRow[], first: number): void {
  let at = first;
  let isActualSize = false;
  const dialog = document.createElement("dialog");
  dialog.className = "lightbox";
  dialog.ariaLabel = "Picture";
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", ({ key }) => {
    if (key === "ArrowRight") go(1);
    if (key === "ArrowLeft") go(-1);
  });
  dialog.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.matches("dialog, .stage")) dialog.close();
  });
  draw();
  dialog.showModal();

  function go(steps: number): void {
    const next = at + steps;
    if (files[next] === undefined) return;
    at = next;
    isActualSize = false;
    draw();
  }

  function toggleSize(): void {
    isActualSize = !isActualSize;
    draw();
  }

  function draw(): void {
    const file = files[at];
    if (file === undefined) return;
    const url = `/local/files/${file.id}`;
    const zoom = isActualSize ? "Show the whole image" : "Show it at full size";
    render(
      html`<div class="stage ${isActualSize ? "actual" : ""}">
          <img src=${url} alt=${file.altText ?? file.name} title=${zoom} @click=${toggleSize} />
        </div>
        ${files[at - 1] === undefined ? nothing : stepView("previous", "Previous picture", () => go(-1))}
        ${files[at + 1] === undefined ? nothing : stepView("next", "Next picture", () => go(1))}
        <p class="lightbox-row">
          <span class="lightbox-name">${file.altText ?? file.name}</span>
          <small>${sizeOf(file)}${files.length > 1 ? ` · ${at + 1} of ${files.length}` : ""}</small>
          <a href=${url} download=${file.name} aria-label="Save the picture" title="Save">${ICONS.save}</a>
          <button type="button" aria-label="Close" title="Close (Escape)" autofocus @click=${() => dialog.close()}>${ICONS.close}</button>
        </p>`,
      dialog,
    );
  }
}

function stepView(direction: "previous" | "next", label: string, step: () => void) {
  const icon = direction === "next" ? ICONS.forward : ICONS.back;
  return html`<button type="button" class="step ${direction}" aria-label=${label} title=${label} @click=${step}>${icon}</button>`;
}

function sizeOf({ width, height }: FileRow): string {
  return width === null || height === null ? "" : `${width} × ${height}`;
}
