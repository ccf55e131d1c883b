import { html, nothing, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { Actions } from "./actions.ts";
import { openNewChat } from "./chats.ts";
import { ICONS } from "./icons.ts";
import { foundView, isFound, searchView } from "./search.ts";
import type { State } from "./state.ts";
import type { ChatRow } from "./wire.ts";

export function sidebarView(state: State, actions: Actions): TemplateResult {
  const newest = newestByChat(state);
  const chats = [...state.chats.values()]
    .filter((chat) => newest.has(chat.id) && !state.leaving.has(chat.id) && isFound(chat, state))
    .sort((a, b) => (newest.get(b.id)?.at ?? 0) - (newest.get(a.id)?.at ?? 0));
  return html`<nav class="sidebar" aria-label="Chats">
    <div class="brand"><img src="/assets/icon.svg" alt="" width="28" height="28" /><b>${state.hello?.botName ?? "Palaver"}</b></div>
    <div class="sidebar-actions">
      <button type="button" class="new-chat" @click=${() => openNewChat(state)}>${ICONS.plus}New chat</button>
      ${searchView(state, actions)}
    </div>
    <div class="lists">
      <h2>Chats</h2>
      ${chats.length === 0 ? html`<p class="hint">${state.query === "" ? "None yet." : "No chat has this title."}</p>` : nothing}
      <ul>${repeat(
        chats,
        ({ id }) => id,
        (chat) => entryView(chat, newest, state),
      )}</ul>
      ${foundView(state, actions)}
    </div>
    ${footView(state, actions)}
  </nav>`;
}

interface Newest {
  /** Unix milliseconds. */
  at: number;
  botId: number;
}

function newestByChat(state: State): Map<string, Newest> {
  const newest = new Map<string, Newest>();
  const note = (chatId: string, at: number, botId: number) => {
    const known = newest.get(chatId) ?? { at: 0, botId: 0 };
    newest.set(chatId, { at: Math.max(known.at, at), botId: Math.max(known.botId, botId) });
  };
  for (const { chatId, id, isDeleted, isBot, createdAt } of state.messages.values()) {
    if (!isDeleted) note(chatId, createdAt, isBot ? id : 0);
  }
  // Keeps a chat with an unsent message in the list.
  for (const { chatId, createdAt } of state.pending) note(chatId, createdAt, 0);
  return newest;
}

function entryView({ id, title }: ChatRow, newest: Map<string, Newest>, state: State): TemplateResult {
  const isOpen = id === state.chatId;
  const isUnread = !isOpen && (newest.get(id)?.botId ?? 0) > (state.lastRead[id] ?? 0);
  return html`<li>
    <a href="#${id}" class=${isUnread ? "unread" : ""} aria-current=${isOpen ? "page" : nothing} title=${title}>
      <span dir="auto">${title}</span>
      ${isUnread ? html`<em><span class="unseen">unread</span></em>` : nothing}
    </a>
  </li>`;
}

function footView(state: State, actions: Actions): TemplateResult {
  const theme = readTheme();
  const next = () => {
    cycleTheme();
    actions.change(() => undefined);
  };
  return html`<div class="sidebar-foot">
    ${connectionView(state)}
    <button type="button" class="theme" aria-label="Colours: ${THEME_LABELS[theme]}" title="Colours: ${THEME_LABELS[theme]}" @click=${next}>
      ${ICONS[theme]}
    </button>
  </div>`;
}

/** Shows the state of the connection. Its tooltip gives the gateway's whole problem. */
function connectionView({ isConnected, gateway }: State): TemplateResult {
  const isWell = isConnected && gateway === null;
  const words = isConnected ? (gateway === null ? "Connected" : `Gateway: ${gateway.state}`) : "Connecting…";
  const title = (isConnected && gateway?.sentence) || "";
  return html`<span class="connection ${isWell ? "on" : "off"}" role="status" title=${title}>${words}</span>`;
}

export type Theme = "auto" | "light" | "dark";

const THEME_LABELS: Record<Theme, string> = { auto: "system", light: "light", dark: "dark" };
const STORED = "palaver.theme";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function readTheme(): Theme {
  const stored = document.documentElement.dataset["theme"];
  return stored === "light" || stored === "dark" ? stored : "auto";
}

/** Switches from the system's theme to light, to dark, and back. The next visit uses the same theme. */
function cycleTheme(): void {
  const theme = NEXT[readTheme()];
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  localStorage.setItem(STORED, theme);
}
