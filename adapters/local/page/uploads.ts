import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { formatSize } from "./format.ts";
import { ICONS } from "./icons.ts";
import { basisView } from "./picture-panel.ts";
import { createNonce, uploadFile } from "./requests.ts";
import { isUploading, type State, type Upload, writingAt } from "./state.ts";

/** Starts to upload files into a composer. Checks each file before it sends any bytes. */
export function addFiles(files: readonly File[], chatId: string, state: State, actions: Actions): void {
  const { maxFiles = 10, maxFileBytes = Infinity } = state.hello ?? {};
  for (const file of files) {
    const { uploads } = writingAt(state, chatId);
    if (uploads.length >= maxFiles) return actions.notice(`At most ${maxFiles} files fit in one message.`);
    if (file.size > maxFileBytes) {
      actions.notice(`“${file.name}” is ${formatSize(file.size)}; the limit is ${formatSize(maxFileBytes)}.`);
    } else if (file.size === 0) actions.notice(`“${file.name}” is empty.`);
    else void upload(file, chatId, state, actions);
  }
}

function removeUpload(upload: Upload, chatId: string, state: State, actions: Actions): void {
  if (upload.previewUrl.startsWith("blob:")) URL.revokeObjectURL(upload.previewUrl);
  actions.write(chatId, { uploads: writingAt(state, chatId).uploads.filter(({ key }) => key !== upload.key) });
}

export function uploadsView(chatId: string, state: State, actions: Actions): TemplateResult | typeof nothing {
  const { uploads, picture } = writingAt(state, chatId);
  if (uploads.length === 0 && picture?.basis === undefined) return nothing;
  return html`<ul class="uploads" aria-label=${picture === undefined ? "Files to send" : "Images to start from"}>
    ${basisView(chatId, state, actions)}
    ${uploads.map(
      (each) => html`<li class=${each.problem === "" ? "" : "failed"} title=${each.problem || each.name}>
        ${each.previewUrl === "" ? ICONS.file : html`<img src=${each.previewUrl} alt="" @error=${() => showNoPreview(each, chatId, state, actions)} />`}
        <span>${each.problem || each.name}</span>
        ${
          each.file === undefined && each.problem === ""
            ? html`<progress value=${each.progress} aria-label="Upload of ${each.name}"></progress>`
            : nothing
        }
        <button type="button" aria-label="Remove ${each.name}" @click=${() => removeUpload(each, chatId, state, actions)}>
          ${ICONS.close}
        </button>
      </li>`,
    )}
  </ul>`;
}

/** Removes the preview of a file that has an image's name but is no image. */
function showNoPreview(upload: Upload, chatId: string, state: State, actions: Actions): void {
  URL.revokeObjectURL(upload.previewUrl);
  const { uploads } = writingAt(state, chatId);
  actions.write(chatId, {
    uploads: uploads.map((each) => (each.key === upload.key ? { ...each, previewUrl: "" } : each)),
  });
}

async function upload(file: File, chatId: string, state: State, actions: Actions): Promise<void> {
  const key = createNonce();
  const previewUrl = /^image\/(png|jpeg|gif|webp|avif)$/.test(file.type) ? URL.createObjectURL(file) : "";
  const first: Upload = { key, name: file.name, previewUrl, progress: 0, file: undefined, problem: "" };
  actions.write(chatId, { uploads: [...writingAt(state, chatId).uploads, first] });

  const update = (changes: Partial<Upload>) => {
    const { uploads } = writingAt(state, chatId);
    actions.write(chatId, { uploads: uploads.map((each) => (each.key === key ? { ...each, ...changes } : each)) });
  };
  try {
    update({ file: await uploadFile(file, (progress) => update({ progress })) });
    const { uploads, isWaiting } = writingAt(state, chatId);
    if (isWaiting && !uploads.some(isUploading)) actions.send(chatId);
  } catch (error) {
    update({ problem: error instanceof Error ? error.message : "The upload failed." });
    actions.write(chatId, { isWaiting: false });
  }
}
