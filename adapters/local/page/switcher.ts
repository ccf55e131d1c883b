import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { isForInputMethod } from "./keys.ts";
import type { State } from "./state.ts";

interface Target {
  label: string;
  open: () => void;
}

export interface Switcher {
  view: (state: State, actions: Actions) => TemplateResult | typeof nothing;
}

const MOST_TARGETS = 9;

/** Jumps to a conversation by a few letters of its title. */
export function createSwitcher(): Switcher {
  let query = "";
  let selected = 0;

  return {
    view(state, actions) {
      if (!state.isSwitcherOpen) {
        query = "";
        selected = 0;
        return nothing;
      }
      const close = () => actions.change((changing) => void (changing.isSwitcherOpen = false));
      const targets = toTargets(query, state, actions);
      const run = (target: Target | undefined) => {
        target?.open();
        close();
      };
      const onKeyDown = (event: KeyboardEvent) => {
        if (isForInputMethod(event)) return;
        // Whoever types fast presses Enter before what they typed is drawn.
        const found = toTargets(query, state, actions);
        if (event.key === "Enter") run(found[selected]);
        else if (event.key === "ArrowDown") selected = Math.min(selected + 1, found.length - 1);
        else if (event.key === "ArrowUp") selected = Math.max(selected - 1, 0);
        else return;
        event.preventDefault();
        actions.change(() => undefined);
      };
      const onInput = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
        query = currentTarget.value;
        selected = 0;
        actions.change(() => undefined);
      };
      return html`<div class="backdrop" @mousedown=${close}></div>
        <div class="switcher" role="dialog" aria-label="Find a conversation">
          <input ${ref(focusOnce)} placeholder="Go to…" aria-label="Title" role="combobox" aria-expanded="true"
            aria-controls="targets" aria-activedescendant="target-${selected}" autocomplete="off"
            @input=${onInput} @keydown=${onKeyDown} />
          <ul id="targets" role="listbox">
            ${targets.map(
              (target, index) => html`<li id="target-${index}" role="option" aria-selected=${index === selected}
                @click=${() => run(target)}>${target.label}</li>`,
            )}
            ${targets.length === 0 ? html`<li class="hint">Nothing is called that.</li>` : nothing}
          </ul>
        </div>`;
    },
  };
}

function focusOnce(element: Element | undefined): void {
  if (element instanceof HTMLElement) requestAnimationFrame(() => element.focus());
}

function toTargets(query: string, state: State, actions: Actions): Target[] {
  const wanted = query.trim().toLowerCase();
  const channels = [...state.channels.values()].filter(({ isDeleted }) => !isDeleted);
  const places = channels.toReversed().map(({ id, title, kind }) => ({
    label: kind === "channel" ? `# ${title}` : title,
    open: () => actions.go({ channelId: id, threadId: null }),
  }));
  const all = [{ label: "New chat", open: actions.newChat }, ...places];
  return all.filter(({ label }) => label.toLowerCase().includes(wanted)).slice(0, MOST_TARGETS);
}
