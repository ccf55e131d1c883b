import { html, nothing, render } from "lit-html";
import { ICONS } from "./icons.ts";
import type { FileRow } from "./wire.ts";

/**
 * Shows pictures in their full size over the page, one at a time. Escape and a click beside the picture close it, the
 * arrow keys go on to the next one, and a click on the picture changes between the whole of it and its own size.
 */
export function openLightbox(files: readonly FileRow[], first: number): void {
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
    const zoom = isActualSize ? "Show the whole picture" : "Show it in its own size";
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
