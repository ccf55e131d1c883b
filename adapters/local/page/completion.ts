import { html, nothing, type TemplateResult } from "lit-html";
import type { State } from "./state.ts";

export interface Choice {
  insert: string;
  label: string;
  description: string;
}

export interface Completion {
  /** UTF-16 offset of the caret. */
  end: number;
  choices: Choice[];
}

const MOST_CHOICES = 8;

function complete(text: string, caret: number, state: State): Completion | undefined {
  const before = text.slice(0, caret);
  const [, command] = /^\/([a-z0-9_-]*)$/i.exec(before) ?? [];
  if (command === undefined) return undefined;
  const choices = commandChoices(command, state).slice(0, MOST_CHOICES);
  return choices.length === 0 ? undefined : { end: caret, choices };
}

function applyChoice(text: string, { end }: Completion, choice: Choice): { text: string; caret: number } {
  const rest = text.slice(end);
  const insert = rest.startsWith(" ") ? choice.insert.trimEnd() : choice.insert;
  return { text: insert + rest, caret: insert.length + (rest.startsWith(" ") ? 1 : 0) };
}

export interface Completer {
  look: (field: HTMLTextAreaElement, state: State) => void;
  close: () => void;
  isOpen: () => boolean;
  /** Returns true if the list used the key. `changed` receives the new text. */
  takeKey: (key: string, field: HTMLTextAreaElement, changed: (text: string) => void) => boolean;
  view: (field: HTMLTextAreaElement | undefined, changed: (text: string) => void) => TemplateResult | typeof nothing;
  /** Id of the selected entry, for the field's `aria-activedescendant`. */
  activeId: () => string | typeof nothing;
}

export function createCompleter(): Completer {
  let completion: Completion | undefined;
  let selected = 0;

  function choose(choice: Choice, field: HTMLTextAreaElement, changed: (text: string) => void): void {
    if (completion === undefined) return;
    const { text, caret } = applyChoice(field.value, completion, choice);
    field.value = text;
    field.setSelectionRange(caret, caret);
    completion = undefined;
    changed(text);
  }

  return {
    look(field, state) {
      completion = complete(field.value, field.selectionStart, state);
      selected = 0;
    },
    close: () => void (completion = undefined),
    isOpen: () => completion !== undefined,
    takeKey(key, field, changed) {
      if (completion === undefined) return false;
      const { choices } = completion;
      const choice = choices[selected];
      if (key === "ArrowDown") selected = (selected + 1) % choices.length;
      else if (key === "ArrowUp") selected = (selected + choices.length - 1) % choices.length;
      else if (key === "Escape") completion = undefined;
      else if (key !== "Enter" && key !== "Tab") return false;
      // If nothing is left to complete, the key works as usual.
      else if (choice === undefined || field.value.trimEnd() === choice.insert.trimEnd()) return false;
      else choose(choice, field, changed);
      return true;
    },
    activeId: () => (completion === undefined ? nothing : `choice-${selected}`),
    view(field, changed) {
      if (completion === undefined || field === undefined) return nothing;
      return listView(completion.choices, selected, (choice) => choose(choice, field, changed));
    },
  };
}

function listView(choices: readonly Choice[], selected: number, choose: (choice: Choice) => void): TemplateResult {
  return html`<ul class="completion" role="listbox" id="completion" aria-label="Completions">
    ${choices.map((choice, index) => {
      // Keeps the focus in the text field.
      const onMouseDown = (event: Event) => {
        event.preventDefault();
        choose(choice);
      };
      return html`<li role="option" id="choice-${index}" aria-selected=${index === selected} @mousedown=${onMouseDown}>
        <b>${choice.label}</b><span>${choice.description}</span>
      </li>`;
    })}
  </ul>`;
}

function commandChoices(typed: string, { hello }: State): Choice[] {
  const known = (hello?.commands ?? []).filter(({ name }) => name.startsWith(typed.toLowerCase()));
  return known.map(({ name, description }) => ({
    insert: `/${name} `,
    label: `/${name}`,
    description: plain(description),
  }));
}

function plain(description: string): string {
  return description.replaceAll("`", "");
}
