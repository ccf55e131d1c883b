import { html, nothing, render } from "lit-html";

/** Asks for a name in a small dialog. It stays open, with the reason, while `take` resolves to one. */
export function askForName(title: string, label: string, take: (name: string) => Promise<string>): void {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  draw("");
  dialog.showModal();

  async function onSubmit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const name = dialog.querySelector("input")?.value.trim() ?? "";
    if (name === "") return;
    const problem = await take(name);
    if (problem === "") dialog.close();
    else draw(problem);
  }

  function draw(problem: string): void {
    render(
      html`<form @submit=${onSubmit}>
        <h2>${title}</h2>
        <label>${label}<input name="name" maxlength="40" autocomplete="off" autofocus required /></label>
        ${problem === "" ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
        <p class="dialog-row">
          <button type="button" @click=${() => dialog.close()}>Cancel</button>
          <button class="primary">Add</button>
        </p>
      </form>`,
      dialog,
    );
  }
}
