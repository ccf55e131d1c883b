import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { repeat } from "lit-html/directives/repeat.js";
import type { Actions } from "./actions.ts";
import { formatDay, isSameDay } from "./format.ts";
import { ICONS } from "./icons.ts";
import { messageView, pendingView } from "./message-view.ts";
import { messagesAt, type Pending, type State } from "./state.ts";
import type { MessageRow } from "./wire.ts";

const GROUP_MS = 5 * 60_000;
const PAGE_MESSAGES = 150;
const AT_BOTTOM_PX = 40;
const FOUND_MS = 2500;

/** One chat's messages. Stays at the bottom while the reader is there. */
export interface Timeline {
  view: (chatId: string, state: State, actions: Actions) => TemplateResult;
}

type Entry = MessageRow | Pending;

export function createTimeline(): Timeline {
  const scroll = createScroll();
  let shownAt = "";
  let shownCount = PAGE_MESSAGES;
  let lastSent: string | undefined;

  return {
    view(chatId, state, actions) {
      if (chatId !== shownAt) {
        shownAt = chatId;
        shownCount = PAGE_MESSAGES;
        scroll.toBottom();
      }
      const pending = state.pending.filter((each) => each.chatId === chatId);
      const entries = mergeEntries(messagesAt(state, chatId), pending);
      const soughtAt = entries.findIndex((entry) => "id" in entry && entry.id === state.soughtId);
      if (soughtAt !== -1) {
        shownCount = Math.max(shownCount, entries.length - soughtAt);
        scroll.toMessage(state.soughtId ?? 0);
        state.soughtId = undefined;
      }
      const shown = entries.slice(-shownCount);
      const messages = shown.filter((entry) => "id" in entry);
      const newestAnswer = messages.findLast(({ buttons }) =>
        buttons.some(({ action }) => action === "regenerate"),
      )?.id;
      const sent = pending.at(-1)?.nonce;
      if (sent !== undefined && sent !== lastSent) scroll.toBottom();
      lastSent = sent ?? lastSent;
      scroll.hold(shown.some((entry) => "id" in entry && entry.id === state.editingId));
      const showMore = () => {
        shownCount += PAGE_MESSAGES;
        actions.change(() => undefined);
      };
      return html`<div class="scroller" ${ref(scroll.attach)}>
          <div class="timeline" role="log" aria-live="off" aria-label="Messages">
            ${
              shown.length < entries.length
                ? html`<button type="button" class="earlier" @click=${showMore}>Show earlier messages</button>`
                : nothing
            }
            ${repeat(
              shown,
              (entry) => ("id" in entry && entry.nonce === null ? entry.id : entry.nonce),
              (entry, index) => entryView(entry, { before: shown[index - 1], newestAnswer }, state, actions),
            )}
            ${progressView(chatId, state)}
          </div>
        </div>
        <div class="jump-place"><button type="button" class="jump" aria-label="Jump to the latest message" title="Jump to the latest message"
          @click=${scroll.toBottom}>${ICONS.down}</button></div>`;
    },
  };
}

/** A refused message stays in its place. A message that is being sent comes last. */
function mergeEntries(messages: readonly MessageRow[], pending: readonly Pending[]): Entry[] {
  const entries: Entry[] = [...messages];
  for (const each of pending) {
    const later =
      each.status === "failed" ? entries.findLastIndex(({ createdAt }) => createdAt <= each.createdAt) + 1 : -1;
    if (later === -1) entries.push(each);
    else entries.splice(later, 0, each);
  }
  return entries;
}

interface Around {
  before: Entry | undefined;
  newestAnswer: number | undefined;
}

function entryView(entry: Entry, { before, newestAnswer }: Around, state: State, actions: Actions): TemplateResult {
  const isNewDay = before === undefined || !isSameDay(before.createdAt, entry.createdAt);
  const isGrouped = !isNewDay && isOneSpeech(before, entry) && entry.createdAt - before.createdAt < GROUP_MS;
  const id = "id" in entry ? entry.id : 0;
  const look = { isGrouped, isWaiting: state.waiting.has(id), isNewestAnswer: id === newestAnswer };
  return html`${isNewDay ? html`<h2 class="day">${formatDay(entry.createdAt, Date.now())}</h2>` : nothing}
  ${"status" in entry ? pendingView(entry, isGrouped, state, actions) : messageView(entry, look, state, actions)}`;
}

/** Keeps answers to two questions separate, even if the message between them was deleted. */
function isOneSpeech(before: Entry, entry: Entry): boolean {
  return isOfBot(before) === isOfBot(entry) && questionOf(before) === questionOf(entry);
}

function isOfBot(entry: Entry): boolean {
  return "isBot" in entry && entry.isBot;
}

function questionOf(entry: Entry): number | null {
  return "id" in entry ? entry.replyTo : null;
}

function progressView(chatId: string, state: State): TemplateResult | typeof nothing {
  const doing = state.progress.find((each) => each.chatId === chatId);
  if (doing === undefined) return nothing;
  return html`<p class="progress" role="status"><i></i><i></i><i></i><span>${doing.text}</span></p>`;
}

interface Scroll {
  attach: (element: Element | undefined) => void;
  toBottom: () => void;
  /** Scrolls to a message that the next frame draws, and highlights it. */
  toMessage: (id: number) => void;
  /** While held, keeps the scroll position: a growing answer would move the field in which the person writes. */
  hold: (isHeld: boolean) => void;
}

/** Stays at the bottom when text, images or a smaller window move it, until the reader scrolls up. */
function createScroll(): Scroll {
  let scroller: HTMLElement | undefined;
  let isFollowing = true;
  let isHeld = false;
  let last = { top: 0, height: 0, room: 0 };

  function follow(): void {
    if (scroller === undefined) return;
    if (isFollowing && !isHeld) scroller.scrollTop = scroller.scrollHeight;
    last = measure(scroller);
  }

  function onScroll(): void {
    if (scroller === undefined) return;
    const { top, height, room } = measure(scroller);
    // A new layout moves the position too. The reader has scrolled up only if nothing else changed.
    const isSameLayout = height === last.height && room === last.room;
    if (isSameLayout && !isHeld && top < last.top - 1) isFollowing = false;
    else if (top >= last.top && height - top - room < AT_BOTTOM_PX) isFollowing = true;
    last = { top, height, room };
    mark();
  }

  function mark(): void {
    scroller?.classList.toggle("is-away", !isFollowing);
  }

  const growth = new ResizeObserver(follow);
  return {
    attach(element) {
      growth.disconnect();
      scroller = element instanceof HTMLElement ? element : undefined;
      if (scroller === undefined) return;
      scroller.addEventListener("scroll", onScroll, { passive: true });
      growth.observe(scroller);
      for (const child of scroller.children) growth.observe(child);
    },
    toBottom() {
      isFollowing = true;
      mark();
      follow();
    },
    toMessage(id) {
      isFollowing = false;
      mark();
      requestAnimationFrame(() => {
        const message = scroller?.querySelector(`[data-id="${id}"]`);
        message?.scrollIntoView({ block: "center" });
        message?.classList.add("found");
        setTimeout(() => message?.classList.remove("found"), FOUND_MS);
      });
    },
    hold(shallHold) {
      if (shallHold === isHeld) return;
      isHeld = shallHold;
      follow();
    },
  };
}

function measure({ scrollTop, scrollHeight, clientHeight }: HTMLElement): {
  top: number;
  height: number;
  room: number;
} {
  return { top: scrollTop, height: scrollHeight, room: clientHeight };
}
