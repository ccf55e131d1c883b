import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { toBoundary } from "./format.ts";
import { ICONS } from "./icons.ts";
import { isForInputMethod } from "./keys.ts";
import { nameOf, type State } from "./state.ts";
import type { ChatRow, MessageRow } from "./wire.ts";

const MOST_MESSAGES = 30;
/** Shorter queries are not searched, because almost every message contains them. */
const MIN_SEARCHED = 2;
const AROUND_CHARS = 40;

/** The search field above the list of chats. Enter opens the first chat in the filtered list. */
export function searchView(state: State, actions: Actions): TemplateResult {
  const onInput = ({ currentTarget }: Event & { currentTarget: HTMLInputElement }) =>
    actions.change((changing) => void (changing.query = currentTarget.value));
  const onKeyDown = (event: KeyboardEvent) => {
    if (isForInputMethod(event) || event.key !== "Enter") return;
    event.preventDefault();
    // Waits for the list, because a fast typist presses Enter before the list is drawn.
    requestAnimationFrame(() => document.querySelector<HTMLElement>(".lists a")?.click());
  };
  return html`<label class="search" title="Search (${shortcut()})">
    ${ICONS.search}<input type="search" placeholder="Search chats" aria-label="Search titles and messages" autocomplete="off"
      .value=${state.query} @input=${onInput} @keydown=${onKeyDown} />
  </label>`;
}

export function isFound({ title }: ChatRow, { query }: State): boolean {
  return title.toLowerCase().includes(toWanted(query));
}

export function foundView(state: State, actions: Actions): TemplateResult | typeof nothing {
  const wanted = toWanted(state.query);
  if (wanted.length < MIN_SEARCHED) return nothing;
  const found = findMessages(wanted, state);
  return html`<h2>Messages</h2>
    ${found.length === 0 ? html`<p class="hint">No messages contain these words.</p>` : nothing}
    <ul class="found-messages">${found.map((each) => hitView(each, wanted, state, actions))}</ul>`;
}

function toWanted(query: string): string {
  return query.trim().toLowerCase();
}

function findMessages(wanted: string, { messages, chats, leaving }: State): MessageRow[] {
  const found: MessageRow[] = [];
  for (const message of [...messages.values()].toReversed()) {
    if (found.length >= MOST_MESSAGES) break;
    const { id, chatId, text, isDeleted } = message;
    const isHidden = isDeleted || !chats.has(chatId) || leaving.has(id) || leaving.has(chatId);
    if (!isHidden && text.toLowerCase().includes(wanted)) found.push(message);
  }
  return found;
}

function hitView({ id, chatId, isBot, text }: MessageRow, wanted: string, state: State, actions: Actions) {
  const open = () =>
    actions.change((changing) => {
      changing.soughtId = id;
      changing.isDrawerOpen = false;
    });
  return html`<li><a href="#${chatId}" @click=${open}>
    <span dir="auto">${snippetOf(text, wanted)}</span>
    <small>${nameOf(state, isBot)} in ${state.chats.get(chatId)?.title}</small>
  </a></li>`;
}

function snippetOf(text: string, wanted: string): TemplateResult {
  const at = text.toLowerCase().indexOf(wanted);
  // The match can start inside a character, because lower case can change a text's length.
  const places = [Math.max(0, at - AROUND_CHARS), at, at + wanted.length, at + wanted.length + AROUND_CHARS];
  const [from = 0, start = 0, end = 0, last = 0] = places.map((place) => toBoundary(text, place));
  const [before, hit, after] = [text.slice(from, start), text.slice(start, end), text.slice(end, last)];
  return html`${from > 0 ? "…" : ""}${before}<mark>${hit}</mark>${after}`;
}

function shortcut(): string {
  return /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl+K";
}
