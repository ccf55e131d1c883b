import { html, type TemplateResult } from "lit-html";
import { openDialog } from "./dialog.ts";
import { formatTime } from "./format.ts";
import { ICONS } from "./icons.ts";
import { postJson } from "./requests.ts";
import type { Preview } from "./wire.ts";

const sheet = new CSSStyleSheet();

/** Shows side by side how other platforms display an answer. Rejects if the server cannot render it. */
export async function showPreviews(text: string, botName: string): Promise<void> {
  const previews = (await postJson("/local/previews", { text })) as Preview[];
  sheet.replaceSync(previews.map(({ style }) => style).join("\n"));
  document.adoptedStyleSheets = [sheet];
  const { dialog, draw } = openDialog(html``);
  dialog.classList.add("previews");
  draw(html`<header>
      <h2>On other platforms</h2>
      <button type="button" class="close" aria-label="Close" @click=${() => dialog.close()}>${ICONS.close}</button>
    </header>
    <div class="preview-columns">${previews.map((preview) => previewView(preview, botName))}</div>
    <p class="hint">How this message will look in each platform's app. Fonts may differ.</p>`);
}

/** Leaves formulas as written, because other platforms draw none. */
function previewView({ platform, messages }: Preview, botName: string): TemplateResult {
  return html`<section aria-label=${platform} data-platform=${platform.toLowerCase()}>
    <h3>${platform}</h3>
    <div class="preview">
      <img src="/assets/icon.svg" alt="" width="36" height="36" />
      <p class="preview-head"><b>${botName}</b> <span>APP</span> <time>${formatTime(Date.now())}</time></p>
      ${messages.map((text) => html`<message-body .content=${{ text, isStreaming: false, keepsTex: true }}></message-body>`)}
    </div>
  </section>`;
}
