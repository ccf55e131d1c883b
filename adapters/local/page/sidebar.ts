import { html, nothing, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { Actions } from "./actions.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import type { State } from "./state.ts";
import type { ChannelRow } from "./wire.ts";

/** The list of conversations: chats by their newest message, channels by name. */
export function sidebarView(state: State, actions: Actions): TemplateResult {
  const newest = newestByChannel(state);
  const all = [...state.channels.values()];
  const chats = all
    .filter(({ kind, id }) => kind === "chat" && newest.has(id) && !state.leaving.has(id))
    .sort((a, b) => (newest.get(b.id)?.at ?? 0) - (newest.get(a.id)?.at ?? 0));
  const channels = all.filter(({ kind }) => kind === "channel").sort((a, b) => a.title.localeCompare(b.title));
  const addChannel = () =>
    askForName({ title: "Make a channel", label: "Name of the channel", verb: "Make" }, actions.addChannel);
  return html`<nav class="sidebar" aria-label="Conversations">
    <div class="brand"><img src="/assets/icon.svg" alt="" width="28" height="28" /><b>${state.hello?.botName ?? "Palaver"}</b></div>
    <div class="sidebar-actions">
      <button type="button" class="new-chat" @click=${actions.newChat}>${ICONS.plus}New chat</button>
      <button type="button" class="find" aria-label="Find a conversation or a message" title="Find a conversation or a message (${shortcut()})"
        @click=${() => actions.change((each) => void (each.isSwitcherOpen = true))}>${ICONS.search}</button>
    </div>
    <div class="lists">
      <h2>Channels<button type="button" aria-label="Make a channel" title="Make a channel" @click=${addChannel}>${ICONS.plus}</button></h2>
      <ul>${repeat(
        channels,
        ({ id }) => id,
        (channel) => entryView(channel, "#", newest, state),
      )}</ul>
      <h2>Chats</h2>
      ${chats.length === 0 ? html`<p class="hint">None yet.</p>` : nothing}
      <ul>${repeat(
        chats,
        ({ id }) => id,
        (channel) => entryView(channel, "", newest, state),
      )}</ul>
    </div>
    ${footView(state, actions)}
  </nav>`;
}

interface Newest {
  /** Unix milliseconds. */
  at: number;
  /** The newest message by anyone but the current speaker. */
  foreignId: number;
}

function newestByChannel(state: State): Map<string, Newest> {
  const newest = new Map<string, Newest>();
  const note = (channelId: string, at: number, foreignId: number) => {
    const known = newest.get(channelId) ?? { at: 0, foreignId: 0 };
    newest.set(channelId, { at: Math.max(known.at, at), foreignId: Math.max(known.foreignId, foreignId) });
  };
  for (const { channelId, id, isDeleted, authorId, createdAt } of state.messages.values()) {
    if (!isDeleted) note(channelId, createdAt, authorId === state.speakerId ? 0 : id);
  }
  // An unsent message keeps its chat in the list.
  for (const { channelId, createdAt } of state.pending) note(channelId, createdAt, 0);
  return newest;
}

function entryView(channel: ChannelRow, mark: string, newest: Map<string, Newest>, state: State): TemplateResult {
  const isOpen = channel.id === state.view.channelId;
  const isUnread = !isOpen && (newest.get(channel.id)?.foreignId ?? 0) > (state.lastRead[channel.id] ?? 0);
  return html`<li>
    <a href="#${channel.id}" class=${isUnread ? "unread" : ""} aria-current=${isOpen ? "page" : nothing} title=${channel.title}>
      ${mark === "" ? nothing : html`<i>${mark}</i>`}<span dir="auto">${channel.title}</span>
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

/** Shows the state of the connection; its tooltip tells the gateway's trouble in full. */
function connectionView({ isConnected, gateway }: State): TemplateResult {
  const isWell = isConnected && gateway === null;
  const words = isConnected ? (gateway === null ? "Connected" : `Gateway: ${gateway.state}`) : "Connecting…";
  const title = (isConnected && gateway?.sentence) || "";
  return html`<span class="connection ${isWell ? "on" : "off"}" role="status" title=${title}>${words}</span>`;
}

function shortcut(): string {
  return /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl+K";
}

export type Theme = "auto" | "light" | "dark";

const THEME_LABELS: Record<Theme, string> = { auto: "as the system", light: "light", dark: "dark" };
const STORED = "palaver.theme";
const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function readTheme(): Theme {
  const stored = document.documentElement.dataset["theme"];
  return stored === "light" || stored === "dark" ? stored : "auto";
}

/** Goes from the system's theme to light, to dark, and around again. Kept for the next visit. */
function cycleTheme(): void {
  const theme = NEXT[readTheme()];
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  localStorage.setItem(STORED, theme);
}
