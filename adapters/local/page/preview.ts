import { html, type TemplateResult } from "lit-html";
import { openDialog } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import { postJson } from "./requests.ts";
import type { Preview } from "./wire.ts";

/** Shows side by side the messages that an answer would come to on the other platforms. Rejects where they are not told. */
export async function showPreviews(text: string): Promise<void> {
  const previews = (await postJson("/local/previews", { text })) as Preview[];
  const { dialog, draw } = openDialog(html``);
  dialog.classList.add("previews");
  draw(html`<header>
      <h2>On other platforms</h2>
      <button type="button" class="close" aria-label="Close" @click=${() => dialog.close()}>${ICONS.close}</button>
    </header>
    <div class="preview-columns">${previews.map(previewView)}</div>
    <p class="hint">What each is sent, message by message; its own letters and colours differ.</p>`);
}

/** Neither draws formulas. */
function previewView({ platform, messages }: Preview): TemplateResult {
  return html`<section aria-label=${platform} data-platform=${platform.toLowerCase()}>
    <h3>${platform}</h3>
    ${messages.map(
      (text) =>
        html`<div class="preview"><message-body .content=${{ text, isStreaming: false, names: [], keepsTex: true }}></message-body></div>`,
    )}
  </section>`;
}
