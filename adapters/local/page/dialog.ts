import { html, nothing, render, type TemplateResult } from "lit-html";

interface Question {
  title: string;
  label: string;
  /** On the button that does it. */
  verb: string;
  value?: string;
  maxLength?: number;
}

/** Asks for a name in a small dialog. It stays open, with the reason, while `take` resolves to one. */
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

interface Choice {
  label: string;
  run: () => void;
}

/** Asks before something that cannot be taken back. The keyboard stands on the way out. */
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

/** Asks for the scope that a bare `/forget` leaves open. */
export function askWhatToForget(forget: (what: "conversation" | "me for good") => void): void {
  askToChoose("What shall be forgotten?", "What is erased cannot be brought back.", [
    { label: "This conversation", run: () => forget("conversation") },
    { label: "Everything about me", run: () => forget("me for good") },
  ]);
}

/** Opens a dialog that goes when it is closed. */
export function openDialog(view: TemplateResult | typeof nothing) {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  const draw = (next: TemplateResult | typeof nothing) => void render(next, dialog);
  draw(view);
  dialog.showModal();
  return { dialog, draw };
}
