import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { formatSize } from "./format.ts";
import { ICONS } from "./icons.ts";
import { basisView } from "./picture-panel.ts";
import { createNonce, uploadFile } from "./requests.ts";
import { isUploading, type Place, type State, type Upload, writingAt } from "./state.ts";

/** Begins to upload files into a composer; each is checked before a byte is sent. */
export function addFiles(files: readonly File[], place: Place, state: State, actions: Actions): void {
  const { maxFiles = 10, maxFileBytes = Infinity } = state.hello ?? {};
  for (const file of files) {
    const { uploads } = writingAt(state, place);
    if (uploads.length >= maxFiles) return actions.notice(`At most ${maxFiles} files fit in one message.`);
    if (file.size > maxFileBytes) {
      actions.notice(
        `“${file.name}” has ${formatSize(file.size)}; a file may have at most ${formatSize(maxFileBytes)}.`,
      );
    } else if (file.size === 0) actions.notice(`“${file.name}” is empty.`);
    else void upload(file, place, state, actions);
  }
}

function removeUpload(upload: Upload, place: Place, state: State, actions: Actions): void {
  if (upload.previewUrl.startsWith("blob:")) URL.revokeObjectURL(upload.previewUrl);
  actions.write(place, { uploads: writingAt(state, place).uploads.filter(({ key }) => key !== upload.key) });
}

export function uploadsView(place: Place, state: State, actions: Actions): TemplateResult | typeof nothing {
  const { uploads, picture } = writingAt(state, place);
  if (uploads.length === 0 && picture?.basis === undefined) return nothing;
  return html`<ul class="uploads" aria-label=${picture === undefined ? "Files to send" : "Pictures to start from"}>
    ${basisView(place, state, actions)}
    ${uploads.map(
      (each) => html`<li class=${each.problem === "" ? "" : "failed"} title=${each.problem || each.name}>
        ${each.previewUrl === "" ? ICONS.file : html`<img src=${each.previewUrl} alt="" @error=${() => showNoPreview(each, place, state, actions)} />`}
        <span>${each.problem || each.name}</span>
        ${
          each.file === undefined && each.problem === ""
            ? html`<progress value=${each.progress} aria-label="Upload of ${each.name}"></progress>`
            : nothing
        }
        <button type="button" aria-label="Remove ${each.name}" @click=${() => removeUpload(each, place, state, actions)}>
          ${ICONS.close}
        </button>
      </li>`,
    )}
  </ul>`;
}

/** A file may be named like a picture and be none. */
function showNoPreview(upload: Upload, place: Place, state: State, actions: Actions): void {
  URL.revokeObjectURL(upload.previewUrl);
  const { uploads } = writingAt(state, place);
  actions.write(place, {
    uploads: uploads.map((each) => (each.key === upload.key ? { ...each, previewUrl: "" } : each)),
  });
}

async function upload(file: File, place: Place, state: State, actions: Actions): Promise<void> {
  const key = createNonce();
  const previewUrl = /^image\/(png|jpeg|gif|webp|avif)$/.test(file.type) ? URL.createObjectURL(file) : "";
  const first: Upload = { key, name: file.name, previewUrl, progress: 0, file: undefined, problem: "" };
  actions.write(place, { uploads: [...writingAt(state, place).uploads, first] });

  const update = (changes: Partial<Upload>) => {
    const { uploads } = writingAt(state, place);
    actions.write(place, { uploads: uploads.map((each) => (each.key === key ? { ...each, ...changes } : each)) });
  };
  try {
    update({ file: await uploadFile(file, (progress) => update({ progress })) });
    const { uploads, isWaiting } = writingAt(state, place);
    if (isWaiting && !uploads.some(isUploading)) actions.send(place);
  } catch (error) {
    update({ problem: error instanceof Error ? error.message : "The file did not get through." });
    // The person decides if the message goes without this file.
    actions.write(place, { isWaiting: false });
  }
}
