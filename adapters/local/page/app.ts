import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { answeringView } from "./answering.ts";
import { renameChat } from "./chats.ts";
import type { Composer } from "./composer.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import type { SetupPanel } from "./setup.ts";
import { sidebarView } from "./sidebar.ts";
import { messagesAt, type State } from "./state.ts";
import type { Timeline } from "./timeline.ts";
import { addFiles } from "./uploads.ts";
import type { ChatRow } from "./wire.ts";

export interface Parts {
  timeline: Timeline;
  composer: Composer;
  setup: SetupPanel;
}

export function appView(state: State, actions: Actions, parts: Parts): TemplateResult {
  const closeDrawer = () => actions.change((changing) => void (changing.isDrawerOpen = false));
  return html`
    <div class="layout ${state.isDrawerOpen ? "drawer-open" : ""}">
      ${sidebarView(state, actions)}
      <div class="veil" @click=${closeDrawer}></div>
      <main>${headView(state, actions)} ${paneView(state, actions, parts)}</main>
    </div>
    ${
      state.notice === ""
        ? nothing
        : html`<p class="notice" role="alert">
      ${state.notice} ${state.undo === undefined ? nothing : html`<button type="button" @click=${state.undo}>Undo</button>`}
    </p>`
    }
  `;
}

function headView(state: State, actions: Actions): TemplateResult {
  const chat = state.chats.get(state.chatId);
  return html`<header class="head">
      <button type="button" class="menu" aria-label="Chats" @click=${() => actions.change((changing) => void (changing.isDrawerOpen = true))}>
        ${ICONS.menu}
      </button>
      <h1><bdi>${chat?.title ?? "New chat"}</bdi></h1>
      ${answeringView(state)} ${chat === undefined ? nothing : chatToolsView(chat, actions)}
    </header>
    <p class="lost" role="status" ?hidden=${state.isConnected || !state.isReady}>Connection lost. Reconnecting…</p>`;
}

function chatToolsView({ id, title }: ChatRow, actions: Actions): TemplateResult {
  const rename = () =>
    askForName({ title: "Rename the chat", label: "Title", verb: "Rename", value: title, maxLength: 80 }, (name) =>
      renameChat(id, name),
    );
  return html`<div class="chat-tools">
    <button type="button" aria-label="Rename the chat" title="Rename" @click=${rename}>${ICONS.edit}</button>
    <button type="button" aria-label="Delete the chat" title="Delete" @click=${() => actions.eraseChat(id)}>${ICONS.trash}</button>
  </div>`;
}

function paneView(state: State, actions: Actions, { timeline, composer, setup }: Parts): TemplateResult {
  const { chatId, isReady } = state;
  const isEmpty = messagesAt(state, chatId).length === 0 && !state.pending.some((each) => each.chatId === chatId);
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    markDrop(event, false);
    addFiles([...(event.dataTransfer?.files ?? [])], chatId, state, actions);
  };
  return html`<section class="pane" @dragover=${onDragOver} @dragleave=${(event: DragEvent) => markDrop(event, false)} @drop=${onDrop}>
    ${!isReady ? html`<div class="scroller"></div>` : nothing}
    ${isReady && isEmpty ? html`<div class="scroller">${welcomeView(state, actions, setup)}</div>` : nothing}
    ${isReady && !isEmpty ? timeline.view(chatId, state, actions) : nothing}
    ${composer.view(chatId, state, actions)}
  </section>`;
}

function onDragOver(event: DragEvent): void {
  if (event.dataTransfer?.types.includes("Files") !== true) return;
  event.preventDefault();
  markDrop(event, true);
}

function markDrop(event: DragEvent, isOver: boolean): void {
  const pane = event.currentTarget;
  if (pane instanceof HTMLElement) pane.classList.toggle("drop", isOver);
}

function welcomeView({ chatId, hello }: State, actions: Actions, setup: SetupPanel): TemplateResult {
  return html`<div class="welcome">
    <img src="/assets/icon.svg" alt="" width="52" height="52" />
    <h1>Talk with ${hello?.botName}</h1>
    <p>
      Answers appear as the model writes them, and the conversation is remembered.
      ${hello?.isShared === true ? "Everyone with the password of this page sees its chats." : nothing}
    </p>
    ${setup.offersView()}
    <p class="begin">Write below, or start with one of these:</p>
    <div class="examples">
      ${(hello?.examples ?? []).map(
        ({ label, prompt }) => html`<button type="button" @click=${() => actions.sendText(chatId, prompt)}>
          <b>${label}</b><span>${prompt}</span>
        </button>`,
      )}
    </div>
  </div>`;
}
