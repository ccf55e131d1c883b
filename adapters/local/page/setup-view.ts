import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { ICONS } from "./icons.ts";
import type { EnvFile, Finding, SetupField, SetupOffer, SetupStep, SetupWay } from "./wire.ts";

/** The last part, behind all steps. */
export const SAVE = "save";

/** The panel's state: the values filled in, and the results of checking and saving them. */
export interface Filled {
  /** Sent with every request; "" if no password is needed. */
  adminPassword: string;
  /** Kept in this page's memory only, so that closing the panel loses nothing. */
  values: Record<string, string>;
  /** The way that was chosen, by step. */
  ways: Record<string, string>;
  findings: Record<string, readonly Finding[]>;
  /** The part that is open: a step, or `SAVE`. */
  part: string;
  /** Something is being asked. */
  isBusy: boolean;
  models: readonly string[];
  file: EnvFile | undefined;
  /** The file was written. */
  isSaved: boolean;
  problem: string;
}

/** Everything a person can do in the panel. */
export interface SetupActions {
  close(): void;
  unlock(adminPassword: string): Promise<void>;
  open(part: string): void;
  choose(step: SetupStep, wayId: string): void;
  write(name: string, value: string): void;
  /** Asks for the steps again, which depend on the values. */
  refresh(): Promise<void>;
  check(stepId: string): Promise<void>;
  listModels(stepId: string): Promise<void>;
  compose(): Promise<void>;
  save(): Promise<void>;
}

/** The way of a step that is chosen, or its first. */
export function wayOf(step: SetupStep, { ways }: Filled): SetupWay {
  return step.ways.find(({ id }) => id === ways[step.id]) ?? (step.ways[0] as SetupWay);
}

/** The whole panel: its parts, and the one that is open. */
export function panelView(offer: SetupOffer, filled: Filled, doing: SetupActions): TemplateResult {
  const step = offer.steps.find(({ id }) => id === filled.part);
  return html`<header>
      <h2 id="setup-title">Set up</h2>
      <button type="button" class="close" aria-label="Close" @click=${doing.close}>${ICONS.close}</button>
    </header>
    ${
      offer.isLocked
        ? nothing
        : html`<nav aria-label="Steps">
            ${offer.steps.map(({ id, title }) => partView(id, title, filled, doing))} ${partView(SAVE, "Save", filled, doing)}
          </nav>`
    }
    <div class="setup-part" aria-busy=${filled.isBusy}>
      ${offer.isLocked ? lockView(filled, doing) : step === undefined ? saveView(offer, filled, doing) : stepView(step, filled, doing)}
      ${filled.problem === "" ? nothing : html`<p class="problem" role="alert">${filled.problem}</p>`}
    </div>`;
}

function lockView({ isBusy }: Filled, doing: SetupActions): TemplateResult {
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.target as HTMLFormElement).get("admin-password");
    void doing.unlock(typeof given === "string" ? given : "");
  };
  return html`<form @submit=${onSubmit}>
    <p>From here, only administrators can set up Palaver.</p>
    <label class="setup-field">
      <b>Administrator's password</b>
      <input name="admin-password" type="password" required autocomplete="off" />
      <small>The one in ADMIN_PASSWORD.</small>
    </label>
    <p class="setup-row"><button class="primary" ?disabled=${isBusy}>Continue</button></p>
  </form>`;
}

function partView(id: string, title: string, { part, findings }: Filled, doing: SetupActions): TemplateResult {
  const found = findings[id] ?? [];
  const isWell = found.length > 0 && found.every(({ ok }) => ok);
  return html`<button type="button" aria-current=${id === part ? "step" : nothing} @click=${() => doing.open(id)}>
    ${isWell ? ICONS.check : nothing}${title}
  </button>`;
}

function stepView(step: SetupStep, filled: Filled, doing: SetupActions): TemplateResult {
  const way = wayOf(step, filled);
  const [first, rest] = [way.fields.filter(({ isFirst }) => isFirst), way.fields.filter(({ isFirst }) => !isFirst)];
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    void doing.check(step.id);
  };
  return html`<form @submit=${onSubmit}>
    <p>${step.summary}</p>
    ${step.ways.length === 1 ? nothing : waysView(step, way, doing)}
    ${first.map((field) => fieldView(field, filled, doing))}
    <ol>
      ${way.tasks.map(
        ({ text, link }) => html`<li>
          ${text}
          ${link === undefined ? nothing : html`<a class="place" href=${link.url} target="_blank" rel="noopener">${link.label}</a>`}
        </li>`,
      )}
    </ol>
    ${rest.map((field) => fieldView(field, filled, doing))}
    <p class="setup-row">
      ${
        rest.some(({ kind }) => kind === "model")
          ? html`<button type="button" ?disabled=${filled.isBusy} @click=${() => doing.listModels(step.id)}>List the models</button>`
          : nothing
      }
      <button class="primary" ?disabled=${filled.isBusy}>${filled.isBusy ? "Trying…" : "Check"}</button>
      <button type="button" ?disabled=${filled.isBusy} @click=${() => doing.open(SAVE)}>Save…</button>
    </p>
    ${findingsView(filled.findings[step.id] ?? [])}
  </form>`;
}

function waysView(step: SetupStep, way: SetupWay, doing: SetupActions): TemplateResult {
  return html`<fieldset class="ways">
    <legend class="unseen">How</legend>
    ${step.ways.map(
      ({ id, label }) => html`<label>
        <input class="unseen" type="radio" name="way" .checked=${live(id === way.id)} @change=${() => doing.choose(step, id)} />
        <span>${label}</span>
      </label>`,
    )}
  </fieldset>`;
}

function fieldView(field: SetupField, filled: Filled, doing: SetupActions): TemplateResult {
  const { name, label, hint, kind, isFirst, isOptional } = field;
  const hasList = kind === "model" && filled.models.length > 0;
  const onInput = (event: Event) => doing.write(name, (event.target as HTMLInputElement).value);
  return html`<label class="setup-field">
    <b>${label}${isOptional ? html` <i>(optional)</i>` : nothing}</b>
    <input name=${name} .value=${live(filled.values[name] ?? "")} list=${hasList ? `list-${name}` : nothing}
      autocomplete="off" autocapitalize="off" spellcheck="false"
      @input=${onInput} @change=${() => (isFirst ? void doing.refresh() : undefined)} />
    <small>${hint}</small>
    ${hasList ? html`<datalist id="list-${name}">${filled.models.map((model) => html`<option value=${model}></option>`)}</datalist>` : nothing}
  </label>`;
}

function findingsView(findings: readonly Finding[]): TemplateResult | typeof nothing {
  if (findings.length === 0) return nothing;
  return html`<ul class="findings" aria-live="polite">
    ${findings.map(
      ({ ok, what, fix }) => html`<li class=${ok ? "right" : "wrong"}>
        ${ok ? ICONS.check : ICONS.close}<span><span class="unseen">${ok ? "Right: " : "Wrong: "}</span>${linked(what)}${fix === undefined ? nothing : html` ${linked(fix)}`}</span>
      </li>`,
    )}
  </ul>`;
}

/** Makes addresses links, shown without what no person reads of them. */
function linked(text: string): (string | TemplateResult)[] {
  return text.split(/(https?:\/\/\S*[^\s.,;:])/).map((part, index) => {
    if (index % 2 === 0 || !URL.canParse(part)) return part;
    const { host, pathname } = new URL(part);
    return html`<a href=${part} target="_blank" rel="noopener">${host}${pathname === "/" ? "" : pathname}</a>`;
  });
}

function saveView({ target }: SetupOffer, filled: Filled, doing: SetupActions): TemplateResult {
  const { file, isSaved, isBusy, values } = filled;
  if (file === undefined) return html`<p>…</p>`;
  const keep = (event: Event) => {
    doing.write("LOCAL_CHAT", (event.target as HTMLInputElement).checked ? "on" : "");
    void doing.compose();
  };
  const hasPlatform = /^(SLACK|DISCORD)_/m.test(file.text);
  return html`<p>These lines make a file <code>.env</code>. They hold your secrets in plain text; this page keeps none of them.</p>
    ${
      hasPlatform
        ? html`<label class="keep"><input type="checkbox" .checked=${live(values["LOCAL_CHAT"] === "on")} @change=${keep} />
            Keep this page too: once a platform is connected, it is off otherwise.</label>`
        : nothing
    }
    ${file.text === "" ? nothing : html`<pre class="env" tabindex="0">${file.text}</pre>`}
    ${file.problems.map((problem) => html`<p class="problem">${problem}</p>`)}
    <p class="setup-row">
      <button type="button" ?disabled=${file.text === ""} @click=${() => void navigator.clipboard?.writeText(file.text)}>${ICONS.copy}Copy</button>
      <button type="button" ?disabled=${file.text === ""} @click=${() => download(file.text)}>${ICONS.save}Download</button>
      ${
        target === null
          ? nothing
          : html`<button type="button" class="primary" ?disabled=${isBusy || isSaved || file.problems.length > 0} @click=${doing.save}>
              Write ${target}
            </button>`
      }
    </p>
    ${
      target === null
        ? html`<p class="hint">Save it in the folder from which you start Palaver, for yourself alone to read (mode 600).</p>`
        : html`<p class="hint">Other lines of that file stay as they are, and only your user can read it (mode 600).</p>`
    }
    ${isSaved ? html`<p class="done" role="status">Written. Now end Palaver (Ctrl+C) and start it again: <code>npm start</code></p>` : nothing}`;
}

function download(text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = ".env";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}
