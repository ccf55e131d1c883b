import { html, nothing, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { ICONS } from "./icons.ts";
import type { EnvFile, Finding, SetupField, SetupOffer, SetupStep, SetupWay } from "./wire.ts";

export const SAVE = "save";

/** The state of each platform in the running process, by the platform's name. */
export type Arrivals = Readonly<Record<string, "connecting" | "connected" | "heard">>;

export interface Filled {
  /** Sent with every request; "" if no password is needed. */
  adminPassword: string;
  /** Kept in memory, so that closing the panel loses nothing. */
  values: Record<string, string>;
  ways: Record<string, string>;
  findings: Record<string, readonly Finding[]>;
  /** The open part: a step's id, or `SAVE`. */
  part: string;
  isBusy: boolean;
  models: readonly string[];
  listing: readonly Finding[];
  file: EnvFile | undefined;
  isSaved: boolean;
  isWatching: boolean;
  arrivals: Arrivals;
  /** The model that answers now; undefined if unknown or if the sandbox answers. */
  answering: string | undefined;
  problem: string;
}

export interface SetupActions {
  close(): void;
  unlock(adminPassword: string): Promise<void>;
  open(part: string): void;
  choose(step: SetupStep, wayId: string): void;
  write(name: string, value: string): void;
  /** Loads the steps again, because they depend on the values. */
  refresh(): Promise<void>;
  check(stepId: string): Promise<void>;
  listModels(step: SetupStep): Promise<void>;
  compose(): Promise<void>;
  save(): Promise<void>;
}

export function wayOf(step: SetupStep, { ways }: Filled): SetupWay {
  return step.ways.find(({ id }) => id === ways[step.id]) ?? (step.ways[0] as SetupWay);
}

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
    <p>On this page, only administrators can set up Palaver.</p>
    <label class="setup-field">
      <b>Administrator's password</b>
      <input name="admin-password" type="password" required autocomplete="off" />
      <small>It opens the dashboard too.</small>
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
  const first = way.fields.filter(({ isFirst }) => isFirst);
  const models = way.fields.filter(({ kind }) => kind === "model");
  const rest = way.fields.filter((field) => !first.includes(field) && !models.includes(field));
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
    ${
      models.length === 0
        ? nothing
        : html`<p class="setup-row">
            <button type="button" ?disabled=${filled.isBusy} @click=${() => doing.listModels(step)}>List the models</button>
          </p>
          ${findingsView(filled.listing)}`
    }
    ${models.map((field) => fieldView(field, filled, doing))}
    <p class="setup-row">
      <button class="primary" ?disabled=${filled.isBusy}>${filled.isBusy ? "Checking…" : "Check"}</button>
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
  const { name, label, hint, kind, isFirst, isOptional = false } = field;
  const title = html`<b>${label}${isOptional ? html` <i>(optional)</i>` : nothing}</b>`;
  if (kind === "model" && filled.models.length > 0) {
    return html`<label class="setup-field">${title} ${modelsView(field, filled, doing)} <small>${hint}</small></label>`;
  }
  const onInput = (event: Event) => doing.write(name, (event.target as HTMLInputElement).value);
  return html`<label class="setup-field">
    ${title}
    <input name=${name} .value=${live(filled.values[name] ?? "")} ?required=${!isOptional}
      autocomplete="off" autocapitalize="off" spellcheck="false"
      @input=${onInput} @change=${() => (isFirst ? void doing.refresh() : undefined)} />
    <small>${hint}</small>
  </label>`;
}

function modelsView({ name, isOptional = false }: SetupField, filled: Filled, doing: SetupActions): TemplateResult {
  const chosen = filled.values[name] ?? "";
  const optionOf = (value: string, label: string) =>
    html`<option value=${value} .selected=${live(value === chosen)}>${label}</option>`;
  const onChange = (event: Event) => doing.write(name, (event.target as HTMLSelectElement).value);
  return html`<select name=${name} ?required=${!isOptional} @change=${onChange}>
    ${optionOf("", isOptional ? "none" : "Choose one…")} ${filled.models.map((model) => optionOf(model, model))}
  </select>`;
}

function findingsView(findings: readonly Finding[]): TemplateResult | typeof nothing {
  if (findings.length === 0) return nothing;
  return html`<ul class="findings" aria-live="polite">
    ${findings.map(
      ({ ok, what, fix, link }) => html`<li class=${ok ? "right" : "wrong"}>
        ${ok ? ICONS.check : ICONS.close}<span><span class="unseen">${ok ? "Right: " : "Wrong: "}</span>${linked(what)}${fix === undefined ? nothing : html` ${linked(fix)}`}
          ${link === undefined ? nothing : html`<a class="go" href=${link.url} target="_blank" rel="noopener">${link.label}</a>`}</span>
      </li>`,
    )}
  </ul>`;
}

/** Turns URLs into links, and shortens their text to the host and the path. */
function linked(text: string): (string | TemplateResult)[] {
  return text.split(/(https?:\/\/\S*[^\s.,;:])/).map((part, index) => {
    if (index % 2 === 0 || !URL.canParse(part)) return part;
    const { host, pathname } = new URL(part);
    return html`<a href=${part} target="_blank" rel="noopener">${host}${pathname === "/" ? "" : pathname}</a>`;
  });
}

function saveView({ steps, target }: SetupOffer, filled: Filled, doing: SetupActions): TemplateResult {
  const { file, isSaved, isBusy, values } = filled;
  if (file === undefined) return html`<p>…</p>`;
  const keep = (event: Event) => {
    doing.write("LOCAL_CHAT", (event.target as HTMLInputElement).checked ? "on" : "");
    void doing.compose();
  };
  const failed = steps.filter(({ id }) => filled.findings[id]?.some(({ ok }) => !ok));
  const hasPlatform = /^(SLACK|DISCORD)_/m.test(file.text);
  return html`<p>These lines belong in the file <code>.env</code>. They contain your secrets in plain text; this page does not store them.</p>
    ${
      hasPlatform
        ? html`<label class="keep"><input type="checkbox" .checked=${live(values["LOCAL_CHAT"] === "on")} @change=${keep} />
            Keep this page on after a platform is connected.</label>`
        : nothing
    }
    ${file.text === "" ? nothing : html`<pre class="env" tabindex="0">${file.text}</pre>`}
    ${file.problems.map((problem) => html`<p class="problem">${problem}</p>`)}
    ${failed.map(({ name }) => html`<p class="problem">The check of ${name} found a problem. Fix it in that step first.</p>`)}
    <p class="setup-row">
      <button type="button" ?disabled=${file.text === ""} @click=${() => void navigator.clipboard?.writeText(file.text)}>${ICONS.copy}Copy</button>
      <button type="button" ?disabled=${file.text === ""} @click=${() => download(file.text)}>${ICONS.save}Download</button>
      ${
        target === null
          ? nothing
          : html`<button type="button" class="primary" ?disabled=${isBusy || isSaved || file.problems.length > 0} @click=${doing.save}>
              Write ${target}${failed.length === 0 ? nothing : " anyway"}
            </button>`
      }
    </p>
    ${
      target === null
        ? html`<p class="hint">Save it in the folder where you start Palaver, and make it readable only by you (mode 600).</p>`
        : html`<p class="hint">The other lines of that file stay as they are, and only you can read it (mode 600).</p>`
    }
    ${isSaved || (target === null && file.text !== "") ? doneView(steps, filled) : nothing}`;
}

/** The last part: asks the person to restart the service and write to it, and shows here that the message arrived. */
function doneView(steps: readonly SetupStep[], filled: Filled): TemplateResult {
  const { arrivals, answering, isSaved, values } = filled;
  const model = values["CHAT_MODEL"] ?? "";
  const hasSecret = (step: SetupStep) =>
    wayOf(step, filled).fields.some(({ kind, name }) => kind === "secret" && (values[name] ?? "") !== "");
  return html`<p class="done" role="status">${isSaved ? "Saved. " : ""}Now stop Palaver (Ctrl+C) and start it again: <code>npm start</code>. Leave this page open.</p>
    <ul class="findings" aria-live="polite">
      ${model === "" ? nothing : modelView(model, answering)}
      ${steps.map((step) => (step.greeting !== undefined && hasSecret(step) ? arrivalView(step, arrivals[step.id]) : nothing))}
    </ul>`;
}

function modelView(model: string, answering: string | undefined): TemplateResult {
  if (answering === model) return html`<li class="right">${ICONS.check}<span>Connected: ${model} answers.</span></li>`;
  return html`<li><span class="waiting"></span><span>Write something on this page.<br /><small>${model} does not answer here yet.</small></span></li>`;
}

function arrivalView({ name, greeting }: SetupStep, state: Arrivals[string] | undefined): TemplateResult {
  if (state === "heard")
    return html`<li class="right">${ICONS.check}<span>The first message from ${name} has arrived.</span></li>`;
  const words =
    state === "connected" ? `${name} is connected. No message has arrived yet.` : `${name} is not connected yet.`;
  return html`<li><span class="waiting"></span><span>${greeting}<br /><small>${words}</small></span></li>`;
}

function download(text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = ".env";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}
