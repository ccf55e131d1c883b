import { html, nothing, render } from "lit-html";
import { describeMoment } from "./format.ts";
import { ask, describeFailure } from "./requests.ts";
import { announce, empty, problem, type View } from "./view.ts";
import type { Finding, Findings, Section } from "./wire.ts";

/** Runs and shows the checks of `npm run doctor` in the process that serves the page. */
export const openDoctor: View = (root) => {
  let found: Findings | undefined;
  let isRunning = false;
  let mayChat = false;
  let words = "";

  async function fetchFindings(init?: RequestInit): Promise<void> {
    try {
      found = await ask<Findings>(`doctor${mayChat ? "?chat=1" : ""}`, init);
      words = "";
    } catch (error) {
      words = describeFailure(error);
    }
  }

  async function run(): Promise<void> {
    isRunning = true;
    show();
    await fetchFindings({ method: "POST" });
    isRunning = false;
    const wrong = (found?.latest?.sections ?? []).flatMap(({ findings }) => findings).filter(({ ok }) => !ok).length;
    announce(wrong === 0 ? "Every check passed." : `${wrong} findings need attention.`);
    show();
  }

  function show(): void {
    const latest = found?.latest;
    const page = html`
      <div class="head"><h1>Doctor</h1></div>
      <p class="hint about">Checks everything in the configuration, as <code>npm run doctor</code> does, from the process that serves this page.</p>
      <p class="actions">
        <button class="primary" ?disabled=${isRunning} @click=${() => void run()}>${isRunning ? "Checking …" : "Check again"}</button>
        <label class="check"><input type="checkbox" .checked=${mayChat} @change=${() => void ((mayChat = !mayChat))} />
          Ask the model a question, which costs a few tokens</label>
        ${latest ? html`<span class="hint">Checked at ${describeMoment(latest.at)}</span>` : nothing}
      </p>
      ${words === "" ? nothing : problem(words)}
      ${latest ? latest.sections.map(toSection) : empty(isRunning ? "This may take a minute." : "No check has run yet.")}
    `;
    render(page, root);
  }

  show();
  void fetchFindings().then(() => (found?.latest ? show() : run()));
  return () => {};
};

function toSection({ title, findings }: Section) {
  const line = ({ ok, what, fix, link }: Finding) => html`
    <li class="finding ${ok ? "ok" : "bad"}">
      <span class="mark" aria-hidden="true">${ok ? "✓" : "✗"}</span>
      <span><span class="unseen">${ok ? "In order: " : "Wrong: "}</span>${what} ${fix === undefined ? nothing : html`<strong>${fix}</strong>`}
        ${link === undefined ? nothing : html`<a href=${link.url} target="_blank" rel="noreferrer">${link.label}</a>`}</span>
    </li>`;
  return html`<section><h2>${title}</h2><ul class="findings">${findings.map(line)}</ul></section>`;
}
