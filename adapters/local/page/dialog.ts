import { html, nothing, render, type TemplateResult } from "lit-html";

interface Question {
  title: string;
  label: string;
  verb: string;
  value?: string;
  maxLength?: number;
}

/** Asks for a name. If `take` resolves to a problem, the dialog shows the problem and stays open. */
export function askForName(question: Question, take: (name: string) => Promise<string>): void {
  const { title, label, verb, value = "", maxLength = 40 } = question;
  const { dialog, draw } = openDialog(view(""));
  dialog.querySelector("input")?.select();

  async function onSubmit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const name = dialog.querySelector("input")?.value.trim() ?? "";
    if (name === "") return;
    const problem = await take(name);
    if (problem === "") dialog.close();
    else draw(view(problem));
  }

  function view(problem: string): TemplateResult {
    return html`<form @submit=${onSubmit}>
      <h2>${title}</h2>
      <label>${label}<input name="name" maxlength=${maxLength} value=${value} autocomplete="off" autofocus required /></label>
      ${problem === "" ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
      <p class="dialog-row">
        <button type="button" @click=${() => dialog.close()}>Cancel</button>
        <button class="primary">${verb}</button>
      </p>
    </form>`;
  }
}

interface Field {
  name: string;
  label: string;
  value: string;
  /** Visible lines. */
  rows: number;
}

interface Form {
  title: string;
  fields: readonly Field[];
  hint: string;
  /** The label of the confirm button. */
  verb: string;
}

/** The reason why a form could not be sent. With `field`, the page shows it under the field of that name. */
export interface FormProblem {
  text: string;
  field?: string | undefined;
}

/** Asks for several texts. If `take` resolves to a problem, the dialog shows the problem and stays open. */
export function askForTexts(
  { title, fields, hint, verb }: Form,
  take: (values: Readonly<Record<string, string>>) => Promise<FormProblem | undefined>,
): void {
  const { dialog, draw } = openDialog(nothing);
  let isBusy = false;
  draw(view());
  dialog.querySelector("textarea")?.focus();

  async function onSubmit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    const areas = [...dialog.querySelectorAll("textarea")];
    const problem = await take(Object.fromEntries(areas.map(({ name, value }) => [name, value])));
    isBusy = false;
    if (problem === undefined) return dialog.close();
    draw(view(problem));
    areas.find(({ name }) => name === problem.field)?.focus();
  }

  function view(problem?: FormProblem): TemplateResult {
    const isElsewhere = problem !== undefined && !fields.some(({ name }) => name === problem.field);
    return html`<form @submit=${onSubmit}>
      <h2>${title}</h2>
      ${fields.map((field) => fieldView(field, field.name === problem?.field ? problem.text : ""))}
      <p class="hint">${hint}</p>
      ${isElsewhere ? html`<p class="problem" role="alert">${problem.text}</p>` : nothing}
      <p class="dialog-row">
        <button type="button" @click=${() => dialog.close()}>Cancel</button>
        <button class="primary">${verb}</button>
      </p>
    </form>`;
  }
}

function fieldView({ name, label, value, rows }: Field, problem: string): TemplateResult {
  const id = `problem-${name}`;
  return html`<label>${label}
      <textarea name=${name} rows=${rows} dir="auto" .defaultValue=${value} @keydown=${sendWithEnter}
        aria-invalid=${problem !== ""} aria-describedby=${problem === "" ? nothing : id}></textarea>
    </label>
    ${problem === "" ? nothing : html`<p class="problem" id=${id} role="alert">${problem}</p>`}`;
}

/** Only Ctrl or Cmd with Enter sends, because Enter starts a new line in a long text. */
function sendWithEnter(event: KeyboardEvent): void {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
}

interface Choice {
  label: string;
  run: () => void;
}

/** Asks before an action that cannot be undone. Cancel has the focus first. */
export function askToChoose(title: string, text: string, choices: readonly Choice[]): void {
  const { dialog, draw } = openDialog(nothing);
  const choose = ({ run }: Choice) => {
    dialog.close();
    run();
  };
  draw(html`<h2>${title}</h2>
    <p>${text}</p>
    <p class="dialog-row">
      <button type="button" autofocus @click=${() => dialog.close()}>Cancel</button>
      ${choices.map((each) => html`<button type="button" class="danger" @click=${() => choose(each)}>${each.label}</button>`)}
    </p>`);
  dialog.querySelector("button")?.focus();
}

export function askWhatToForget(forget: (what: "conversation" | "me for good") => void): void {
  askToChoose("What should I forget?", "Erased data cannot be restored.", [
    { label: "This conversation", run: () => forget("conversation") },
    { label: "Everything about me", run: () => forget("me for good") },
  ]);
}

export function openDialog(view: TemplateResult | typeof nothing) {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  const draw = (next: TemplateResult | typeof nothing) => {
    render(next, dialog);
    dialog.ariaLabel = dialog.querySelector("h2")?.textContent ?? "";
  };
  draw(view);
  dialog.showModal();
  return { dialog, draw };
}
