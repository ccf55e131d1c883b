import { html, nothing, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { answeringView } from "./answering.ts";
import type { Composer } from "./composer.ts";
import { askForName } from "./dialog.ts";
import { ICONS } from "./icons.ts";
import type { SetupPanel } from "./setup.ts";
import { sidebarView } from "./sidebar.ts";
import { isChat, messagesAt, type Place, placeKey, type State } from "./state.ts";
import type { Switcher } from "./switcher.ts";
import type { Timeline } from "./timeline.ts";
import { addFiles } from "./uploads.ts";
import type { ChannelRow } from "./wire.ts";

export interface Parts {
  main: { timeline: Timeline; composer: Composer };
  thread: { timeline: Timeline; composer: Composer };
  switcher: Switcher;
  setup: SetupPanel;
}

/** The whole page: conversations, the one that is open, and its thread beside it. */
export function appView(state: State, actions: Actions, parts: Parts): TemplateResult {
  const { channelId, threadId } = state.view;
  const thread = threadId === null || isChat(state, channelId) ? undefined : { channelId, threadId };
  const closeDrawer = () => actions.change((changing) => void (changing.isDrawerOpen = false));
  return html`
    <div class="layout ${state.isDrawerOpen ? "drawer-open" : ""} ${thread === undefined ? "" : "thread-open"}">
      ${sidebarView(state, actions)}
      <div class="veil" @click=${closeDrawer}></div>
      <main>${headView(state, actions)} ${paneView({ channelId, threadId: null }, state, actions, parts.main, parts.setup)}</main>
      ${thread === undefined ? nothing : threadView(thread, state, actions, parts.thread)}
    </div>
    ${parts.switcher.view(state, actions)}
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
  const { channelId } = state.view;
  const channel = state.channels.get(channelId);
  const title = channel === undefined ? "New chat" : channel.title;
  return html`<header class="head">
      <button type="button" class="menu" aria-label="Conversations" @click=${() => actions.change((changing) => void (changing.isDrawerOpen = true))}>
        ${ICONS.menu}
      </button>
      <h1>${isChat(state, channelId) ? nothing : html`<i>#</i>`}<bdi>${title}</bdi></h1>
      ${answeringView(state)} ${channel?.kind === "chat" ? chatToolsView(channel, actions) : nothing}
    </header>
    <p class="lost" role="status" ?hidden=${state.isConnected || !state.isReady}>Connection lost. Trying again…</p>`;
}

function chatToolsView({ id, title }: ChannelRow, actions: Actions): TemplateResult {
  const rename = () =>
    askForName({ title: "Rename the chat", label: "Title", verb: "Rename", value: title, maxLength: 80 }, (name) =>
      actions.renameChat(id, name),
    );
  return html`<div class="chat-tools">
    <button type="button" aria-label="Rename the chat" title="Rename" @click=${rename}>${ICONS.edit}</button>
    <button type="button" aria-label="Delete the chat" title="Delete" @click=${() => actions.eraseChat(id)}>${ICONS.trash}</button>
  </div>`;
}

function threadView(place: Place, state: State, actions: Actions, part: Parts["thread"]): TemplateResult {
  const close = () => actions.go({ channelId: place.channelId, threadId: null });
  return html`<aside class="thread" aria-label="Thread">
    <header class="head">
      <button type="button" class="back" aria-label="Back to the channel" @click=${close}>${ICONS.back}</button>
      <h1>Thread</h1>
      <small>#${state.channels.get(place.channelId)?.title}</small>
      <button type="button" class="close" aria-label="Close the thread" title="Close (Escape)" @click=${close}>${ICONS.close}</button>
    </header>
    ${paneView(place, state, actions, part)}
  </aside>`;
}

function paneView(
  place: Place,
  state: State,
  actions: Actions,
  { timeline, composer }: Parts["main"],
  setup?: SetupPanel,
): TemplateResult {
  const isEmpty =
    messagesAt(state, place).length === 0 && !state.pending.some((each) => placeKey(each) === placeKey(place));
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    markDrop(event, false);
    addFiles([...(event.dataTransfer?.files ?? [])], place, state, actions);
  };
  return html`<section class="pane" @dragover=${onDragOver} @dragleave=${(event: DragEvent) => markDrop(event, false)} @drop=${onDrop}>
    ${!state.isReady ? html`<div class="scroller"></div>` : nothing}
    ${state.isReady && isEmpty ? html`<div class="scroller">${welcomeView(place, state, actions, setup)}</div>` : nothing}
    ${state.isReady && !isEmpty ? timeline.view(place, state, actions) : nothing}
    ${composer.view(place, state, actions)}
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

/** Greets people where nobody has written yet. */
function welcomeView(place: Place, state: State, actions: Actions, setup?: SetupPanel): TemplateResult {
  const bot = state.hello?.botName ?? "";
  if (!isChat(state, place.channelId)) {
    return html`<div class="welcome">
      <h1>#${state.channels.get(place.channelId)?.title}</h1>
      <p>People talk here among themselves. Write <b>@${bot}</b> in a message, and the answer opens a thread under it.</p>
    </div>`;
  }
  return html`<div class="welcome">
    <img src="/assets/icon.svg" alt="" width="52" height="52" />
    <h1>Talk with ${bot}</h1>
    <p>
      The answer grows while the model writes it, and the conversation is remembered.<br />
      Write below, or begin with one of these.
    </p>
    <div class="examples">
      ${(state.hello?.examples ?? []).map(
        ({ label, prompt }) => html`<button type="button" @click=${() => actions.sendText(place, prompt)}>
          <b>${label}</b><span>${prompt}</span>
        </button>`,
      )}
    </div>
    ${setup?.offersView() ?? nothing}
  </div>`;
}
