import { render } from "lit-html";
import { createActions } from "./actions.ts";
import { createModelReader, readAnswering } from "./answering.ts";
import { appView, type Parts } from "./app.ts";
import { isGone, openNewChat, readChat, toNewChat } from "./chats.ts";
import { createComposer } from "./composer.ts";
import { createDraftKeeper, readDrafts } from "./drafts.ts";
import { followEventStream } from "./event-stream.ts";
import { toBoundary } from "./format.ts";
import { listenToKeys } from "./keys.ts";
import { createSending } from "./sending.ts";
import { createSetupPanel } from "./setup.ts";
import { createStore, messagesAt, nameOf, type State } from "./state.ts";
import { createTimeline } from "./timeline.ts";

const LAST_READ = "palaver.read";
const LAST_CHAT = "palaver.place";
/** A screen reader gets at most this many characters of an answer. */
const MOST_CHARS = 300;

let spoken = "";

let isFirstVisit = localStorage.getItem(LAST_READ) === null;
const root = document.querySelector<HTMLElement>("#app");
if (root === null) throw new Error("The page has no root element.");

const chatId = readChat(location.hash) ?? readChat(localStorage.getItem(LAST_CHAT) ?? "") ?? toNewChat();
// Puts the chat into the URL, so that a reload returns to it even if it has no messages yet.
history.replaceState(null, "", `#${chatId}`);
const drafts = readDrafts(Date.now());
const store = createStore({ chatId, lastRead: readLastRead(), writing: new Map(drafts) });
const readModel = createModelReader(store);
const keepDrafts = createDraftKeeper(drafts);
const sending = createSending(store);
const actions = createActions(store, sending);
const parts: Parts = {
  timeline: createTimeline(),
  composer: createComposer(),
  setup: createSetupPanel(
    () => store.change(() => undefined),
    () => readAnswering(store.state),
  ),
};

store.onDraw((state) => {
  if (state.isReady && isGone(state, state.chatId)) openNewChat(state);
  markRead(state);
  render(appView(state, actions, parts), root);
  document.title = titleOf(state);
  announce(state);
  keepDrafts(state);
  readModel(state);
});
// Saves text that was typed just before a reload, because the page is not drawn again.
addEventListener("pagehide", () => keepDrafts(store.state));
addEventListener("hashchange", () => {
  const opened = readChat(location.hash);
  if (opened === undefined) return;
  localStorage.setItem(LAST_CHAT, location.hash);
  store.change((state) => {
    state.chatId = opened;
    state.isDrawerOpen = false;
    state.editingId = undefined;
  });
  requestAnimationFrame(() => {
    // Keeps the focus in the search field if the person opened the chat from a search.
    if (document.activeElement?.matches(".search input") !== true) parts.composer.focus();
  });
});
listenToKeys(store.state, actions);
followEventStream(store, sending.resume, () => actions.sendWaiting());
void parts.setup.load();
store.change(() => undefined);
// Sets no focus on a phone, because the keyboard would cover the page.
if (matchMedia("(hover: hover)").matches) requestAnimationFrame(() => parts.composer.focus());

/** Marks the open chat as read, or all chats on the very first visit. */
function markRead(state: State): void {
  if (!state.isReady || document.hidden) return;
  let isChanged = isFirstVisit;
  for (const { chatId: at, id } of state.messages.values()) {
    const isSeen = isFirstVisit || at === state.chatId;
    if (!isSeen || (state.lastRead[at] ?? 0) >= id) continue;
    state.lastRead[at] = id;
    isChanged = true;
  }
  isFirstVisit = false;
  if (isChanged) localStorage.setItem(LAST_READ, JSON.stringify(state.lastRead));
}

function readLastRead(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(LAST_READ) ?? "{}") as Record<string, number>;
  } catch {
    return {};
  }
}

function titleOf(state: State): string {
  const name = state.hello?.botName ?? "Palaver";
  const chat = state.chats.get(state.chatId);
  return chat === undefined ? name : `${chat.title} · ${name}`;
}

/** Announces to a screen reader that an answer has started, and reads the whole answer when it is complete. */
function announce(state: State): void {
  const element = document.querySelector("#announcements");
  const last = messagesAt(state, state.chatId).at(-1);
  if (element === null || last === undefined || !state.isReady) return;
  const next = `${last.id}:${last.isStreaming}`;
  if (next === spoken) return;
  const isFirst = spoken === "";
  spoken = next;
  if (isFirst || !last.isBot) return;
  const name = nameOf(state, true);
  const words = last.text.slice(0, toBoundary(last.text, MOST_CHARS));
  element.textContent = last.isStreaming ? `${name} is answering.` : `${name}: ${words}`;
}
