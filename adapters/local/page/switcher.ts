import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { toBoundary } from "./format.ts";
import { isForInputMethod } from "./keys.ts";
import { nameOf, type State } from "./state.ts";

interface Target {
  label: string | TemplateResult;
  /** Says where a message stands. */
  place?: string;
  open: () => void;
}

export interface Switcher {
  view: (state: State, actions: Actions) => TemplateResult | typeof nothing;
}

const MOST_PLACES = 9;
const MOST_MESSAGES = 30;
/** Fewer letters are in every message. */
const MIN_SEARCHED = 2;
/** Characters of a message shown on either side of the words that were found. */
const AROUND_CHARS = 40;

/** Jumps to a conversation by a few letters of its title, or to a message by any words in it. */
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
        // A fast typist presses Enter before the list is drawn.
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
        <div class="switcher" role="dialog" aria-label="Find a conversation or a message">
          <input ${ref(focusOnce)} placeholder="Go to, or search…" aria-label="Title, or words of a message" role="combobox" aria-expanded="true"
            aria-controls="targets" aria-activedescendant="target-${selected}" autocomplete="off"
            @input=${onInput} @keydown=${onKeyDown} />
          <ul id="targets" role="listbox">
            ${targets.map(
              (target, index) => html`<li id="target-${index}" role="option" aria-selected=${index === selected}
                @click=${() => run(target)}><bdi>${target.label}</bdi>${target.place === undefined ? nothing : html`<small>${target.place}</small>`}</li>`,
            )}
            ${targets.length === 0 ? html`<li class="hint">Nothing is called that, and nobody has said it.</li>` : nothing}
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
  const channels = [...state.channels.values()].filter(({ id, isDeleted }) => !isDeleted && !state.leaving.has(id));
  const places = channels.toReversed().map(({ id, title, kind }) => ({
    label: kind === "channel" ? `# ${title}` : title,
    open: () => actions.go({ channelId: id, threadId: null }),
  }));
  const all = [{ label: "New chat", open: actions.newChat }, ...places];
  const named = all.filter(({ label }) => label.toLowerCase().includes(wanted)).slice(0, MOST_PLACES);
  return wanted.length < MIN_SEARCHED ? named : [...named, ...findMessages(wanted, state, actions)];
}

/** The newest messages that hold the words, among those that the reader may see. */
function findMessages(wanted: string, state: State, actions: Actions): Target[] {
  const found: Target[] = [];
  for (const message of [...state.messages.values()].toReversed()) {
    if (found.length >= MOST_MESSAGES) break;
    const { id, channelId, threadId, text, isDeleted, visibleTo } = message;
    const channel = state.channels.get(channelId);
    if (isDeleted || channel === undefined || channel.isDeleted) continue;
    if (state.leaving.has(id) || state.leaving.has(channelId)) continue;
    if (visibleTo !== null && visibleTo !== state.speakerId) continue;
    const at = text.toLowerCase().indexOf(wanted);
    if (at === -1) continue;
    found.push({
      label: snippetOf(text, at, wanted.length),
      place: `${nameOf(state, message.authorId)} in ${channel.kind === "channel" ? "#" : ""}${channel.title}`,
      open() {
        actions.change((changing) => void (changing.soughtId = id));
        actions.go({ channelId, threadId });
      },
    });
  }
  return found;
}

function snippetOf(text: string, at: number, length: number): TemplateResult {
  // In small letters a text may have another length, so that even the hit can begin inside of a character.
  const places = [Math.max(0, at - AROUND_CHARS), at, at + length, at + length + AROUND_CHARS];
  const [from = 0, start = 0, end = 0, last = 0] = places.map((place) => toBoundary(text, place));
  const [before, hit, after] = [text.slice(from, start), text.slice(start, end), text.slice(end, last)];
  return html`${from > 0 ? "…" : ""}${before}<mark>${hit}</mark>${after}`;
}
