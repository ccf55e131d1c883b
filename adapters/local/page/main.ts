import { render } from "lit-html";
import { createActions } from "./actions.ts";
import { createModelReader } from "./answering.ts";
import { appView, type Parts } from "./app.ts";
import { createComposer } from "./composer.ts";
import { createDraftKeeper, readDrafts } from "./drafts.ts";
import { followEventStream } from "./event-stream.ts";
import { toBoundary } from "./format.ts";
import { listenToKeys } from "./keys.ts";
import { findMentions } from "./mentions.ts";
import { isGone, readPlace, toNewChat } from "./places.ts";
import { createSending } from "./sending.ts";
import { createSetupPanel } from "./setup.ts";
import { createStore, isChat, messagesAt, nameOf, type Pending, placeKey, type State } from "./state.ts";
import { createSwitcher } from "./switcher.ts";
import { createTimeline } from "./timeline.ts";

const LAST_READ = "palaver.read";
const LAST_PLACE = "palaver.place";
/** Most characters of an answer that a screen reader is given. */
const MOST_CHARS = 300;

/** The text that a screen reader was told last. */
let spoken = "";

let isFirstVisit = localStorage.getItem(LAST_READ) === null;
const root = document.querySelector<HTMLElement>("#app");
if (root === null) throw new Error("The page has no element to draw in.");

const firstPlace = readPlace(location.hash) ?? readPlace(localStorage.getItem(LAST_PLACE) ?? "");
const view = firstPlace ?? toNewChat();
// A reload must come back here, also to a chat that begins with the next message.
history.replaceState(null, "", `#${placeKey(view)}`);
const drafts = readDrafts(Date.now());
const store = createStore({
  view,
  speakerId: localStorage.getItem("palaver.speaker") ?? "ada",
  lastRead: readLastRead(),
  writing: new Map(drafts),
});
const readModel = createModelReader(store);
const keepDrafts = createDraftKeeper(drafts);
const sending = createSending(store, openOwnThread);
const actions = createActions(store, sending);
const parts: Parts = {
  main: { timeline: createTimeline(), composer: createComposer() },
  thread: { timeline: createTimeline(), composer: createComposer() },
  switcher: createSwitcher(),
  setup: createSetupPanel(() => store.change(() => undefined)),
};

store.onDraw((state) => {
  repair(state);
  markRead(state);
  render(appView(state, actions, parts), root);
  document.title = titleOf(state);
  announce(state);
  keepDrafts(state);
  readModel(state);
});
// Text typed just before a reload is not drawn any more.
addEventListener("pagehide", () => keepDrafts(store.state));
addEventListener("hashchange", () => {
  const place = readPlace(location.hash);
  if (place === undefined) return;
  localStorage.setItem(LAST_PLACE, location.hash);
  store.change((state) => {
    state.view = place;
    state.isDrawerOpen = false;
    state.editingId = undefined;
  });
  const { composer } = place.threadId === null ? parts.main : parts.thread;
  requestAnimationFrame(() => {
    // What is typed into a switcher that was opened meanwhile must not end up here.
    if (!store.state.isSwitcherOpen) composer.focus();
  });
});
listenToKeys(store.state, actions);
followEventStream(store, sending.resume, () => actions.sendWaiting());
void parts.setup.load();
store.change(() => undefined);
// A phone would open its keyboard over the page.
if (matchMedia("(hover: hover)").matches) requestAnimationFrame(() => parts.main.composer.focus());

/** Replaces a speaker or a place that no longer exists. */
function repair(state: State): void {
  if (!state.isReady) return;
  if (!state.people.has(state.speakerId)) state.speakerId = [...state.people.keys()][0] ?? "";
  if (isGone(state, state.view)) actions.newChat();
}

/** A question asked in a channel is answered in its thread: that is where to look. */
function openOwnThread({ channelId, threadId, text }: Pending, id: number): void {
  const { state } = store;
  if (isChat(state, channelId) || threadId !== null || channelId !== state.view.channelId) return;
  if (findMentions(text, [state.hello?.botName ?? ""]).length > 0) actions.go({ channelId, threadId: id });
}

/** Marks the open channel as read; on the very first visit, all channels. */
function markRead(state: State): void {
  if (!state.isReady || document.hidden) return;
  let isChanged = isFirstVisit;
  for (const { channelId, id } of state.messages.values()) {
    const isSeen = isFirstVisit || channelId === state.view.channelId;
    if (!isSeen || (state.lastRead[channelId] ?? 0) >= id) continue;
    state.lastRead[channelId] = id;
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
  const channel = state.channels.get(state.view.channelId);
  if (channel === undefined) return name;
  return `${isChat(state, channel.id) ? "" : "#"}${channel.title} · ${name}`;
}

/** Tells a screen reader when an answer begins and reads it when it is whole, instead of every step of its growth. */
function announce(state: State): void {
  const element = document.querySelector("#announcements");
  const last = messagesAt(state, state.view).at(-1);
  if (element === null || last === undefined || !state.isReady) return;
  const next = `${last.id}:${last.isStreaming}`;
  if (next === spoken) return;
  const isFirst = spoken === "";
  spoken = next;
  if (isFirst || last.authorId === state.speakerId) return;
  const name = nameOf(state, last.authorId);
  const words = last.text.slice(0, toBoundary(last.text, MOST_CHARS));
  element.textContent = last.isStreaming ? `${name} is answering.` : `${name}: ${words}`;
}
