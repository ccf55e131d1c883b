import { html, nothing, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { copyText } from "./body.ts";
import { askToChoose } from "./dialog.ts";
import { countOf, formatTime, formatWhole } from "./format.ts";
import { ICONS } from "./icons.ts";
import { isForInputMethod } from "./keys.ts";
import { describeOptions, readPrompt, toOptions } from "./picture-form.ts";
import { filesView } from "./pictures.ts";
import { showPreviews } from "./preview.ts";
import { describeProblem } from "./requests.ts";
import { nameOf, type Pending, pictureOf, repliesTo, type State, textsOf } from "./state.ts";
import type { Button, ImagineOptions, MessageRow } from "./wire.ts";
import { isWorking } from "./working.ts";

export interface MessageLook {
  /** Follows another message of the same author closely: no name and picture again. */
  isGrouped: boolean;
  /** Shown below the first message of a thread in its channel. */
  hasThreadLink: boolean;
  /** The place allows replies under a message. */
  canReply: boolean;
  /** A question that is answered after another one. */
  isWaiting: boolean;
  /** Only the newest answer is asked for once more. */
  isNewestAnswer: boolean;
}

export function messageView(message: MessageRow, look: MessageLook, state: State, actions: Actions): TemplateResult {
  const replies = look.hasThreadLink ? repliesTo(state, message.id) : [];
  const isEditing = state.editingId === message.id;
  const last = replies.at(-1);
  const depends = [
    message,
    look.isGrouped,
    look.canReply,
    look.isWaiting,
    look.isNewestAnswer,
    replies.length,
    last?.id,
    last?.isStreaming,
  ];
  const names = namesOf(state);
  const seen = message.files.filter(({ id }) => state.uncovered.has(id)).length;
  const isAskedWhy = state.judgedId === message.id;
  const about = [isEditing, isAskedWhy, state.speakerId, nameOf(state, message.authorId), names.length, seen];
  return html`${guard([...depends, ...about], () => {
    if (message.isDeleted) return deletedView(message, replies, actions);
    return html`<article
      class="message ${message.authorId === null ? "bot" : ""} ${isDrawn(message) ? "drawn" : ""} ${look.isGrouped ? "grouped" : ""}"
      data-id=${message.id}
    >
      ${headView(message, state)}
      ${stepsView(message)} ${isEditing ? editView(message, actions) : bodyView(message, names, state)}
      ${look.isWaiting ? html`<span class="hint">waits for its turn</span>` : nothing}
      ${isWorking(message) ? html`<div class="working" aria-hidden="true"></div>` : nothing}
      ${filesView(message.files, state, actions)} ${buttonsView(message, look, state, actions)}
      ${threadLink(message, replies, actions)} ${toolsView(message, look, state, actions)}
    </article>`;
  })}`;
}

const STEP_ICONS = { done: ICONS.check, failed: ICONS.close, running: ICONS.more };

/** The steps on the way to an answer, folded into one line. */
function stepsView({ steps, stepsLine }: MessageRow): TemplateResult | typeof nothing {
  if (steps.length === 0) return nothing;
  return html`<details class="steps">
    <summary>${stepsLine}</summary>
    <ul>
      ${steps.map(({ title, state }) => html`<li class=${state}>${STEP_ICONS[state]}<bdi>${title}</bdi>${state === "failed" ? html` <small>failed</small>` : nothing}</li>`)}
    </ul>
  </details>`;
}

/** A picture of the bot: what belongs to it stands under it. */
function isDrawn({ buttons }: MessageRow): boolean {
  return buttons.some(({ action }) => action === "again");
}

/** A message that is not on the server yet, or did not get there. */
export function pendingView(pending: Pending, isGrouped: boolean, state: State, actions: Actions): TemplateResult {
  const { nonce, problem, status } = pending;
  const failure = html`<p class="problem" role="alert">
    <span>Not sent. ${problem}</span>
    <button type="button" @click=${() => actions.again(nonce)}>Send again</button>
    <button type="button" @click=${() => actions.rewrite(nonce)}>Edit</button>
    <button type="button" @click=${() => actions.discard(nonce)}>Discard</button>
  </p>`;
  return html`<article class="message pending ${status} ${isGrouped ? "grouped" : ""}">
    ${headView(pending, state)}
    ${pending.text.startsWith("/") ? commandView(pending.text, optionsOf(pending), state) : textView(pending.text, state)}
    ${filesView(pending.files, state, actions)} ${status === "failed" ? failure : nothing}
    ${status === "waiting" ? html`<p class="hint">Waiting for the connection…</p>` : nothing}
  </article>`;
}

function headView(
  message: { authorId: string | null; createdAt: number; visibleTo?: string | null },
  state: State,
): TemplateResult {
  const name = nameOf(state, message.authorId);
  return html`<div class="avatar" data-hue=${message.authorId === null ? "bot" : hueOf(message.authorId)} aria-hidden="true">
      ${message.authorId === null ? nothing : Array.from(name)[0]?.toUpperCase()}
    </div>
    <header>
      <b>${name}</b>
      <time datetime=${new Date(message.createdAt).toISOString()} title=${formatWhole(message.createdAt)}
        >${formatTime(message.createdAt)}</time
      >
      ${message.visibleTo ? html`<span class="hint">only visible to you</span>` : nothing}
    </header>`;
}

function bodyView(message: MessageRow, names: string[], state: State): TemplateResult {
  if (message.isCommand) return commandView(message.text, message.options, state);
  const content = { text: message.text, isStreaming: message.isStreaming, names };
  return html`<message-body .content=${content}></message-body>
    ${message.editedAt === null ? nothing : html`<span class="hint" title=${formatWhole(message.editedAt)}>edited</span>`}`;
}

/** Shows a request for a picture as its words, with the choices beside them, and any other command as it was typed. */
function commandView(text: string, options: ImagineOptions, state: State): TemplateResult {
  const prompt = readPrompt(text) ?? "";
  if (prompt === "") return html`<p class="command"><code>${text}</code></p>`;
  const choices = describeOptions(options);
  const basis = options.basis === undefined ? undefined : pictureOf(state, options.basis);
  return html`<div class="order">
    ${basis === undefined ? nothing : html`<img src="/local/files/${basis.id}" alt="The picture to change" title="The picture to change" />`}
    <p>${ICONS.picture}<span class="unseen">Draw:</span> <bdi>${prompt}</bdi></p>
    ${choices === "" ? nothing : html`<small class="hint">${choices}</small>`}
  </div>`;
}

function textView(text: string, state: State): TemplateResult {
  return html`<message-body .content=${{ text, isStreaming: false, names: namesOf(state) }}></message-body>`;
}

function optionsOf({ picture }: Pending): ImagineOptions {
  return picture === undefined ? {} : toOptions(picture);
}

function threadLink(
  message: MessageRow,
  replies: readonly MessageRow[],
  actions: Actions,
): TemplateResult | typeof nothing {
  const last = replies.at(-1);
  if (last === undefined) return nothing;
  const open = () => actions.go({ channelId: message.channelId, threadId: message.id });
  return html`<button type="button" class="thread-link" @click=${open}>
    ${ICONS.reply}<b>${countOf(replies.length, "reply", "replies")}</b>
    <span class="hint">${last.isStreaming ? "being written…" : `last at ${formatTime(last.createdAt)}`}</span>
  </button>`;
}

function toolsView(
  message: MessageRow,
  look: MessageLook,
  state: State,
  actions: Actions,
): TemplateResult | typeof nothing {
  const isOwn = message.authorId === state.speakerId;
  if (message.text === "" && !look.canReply && !isOwn) return nothing;
  const copy = async () => {
    const texts = textsOf(state, message);
    const copied = texts.length === 1 ? "Copied." : `Copied the whole answer, ${texts.length} messages.`;
    actions.notice((await copyText(texts.join("\n\n"))) ? copied : "The browser did not allow copying.");
  };
  const hasPreviews = state.hello?.hasPreviews === true && message.authorId === null && message.text !== "";
  const preview = async () => {
    const { botName = "Palaver" } = state.hello ?? {};
    await showPreviews(textsOf(state, message).join("\n\n"), botName).catch((error) =>
      actions.notice(describeProblem(error)),
    );
  };
  const edit = () => actions.change((state) => void (state.editingId = message.id));
  const reply = () => actions.go({ channelId: message.channelId, threadId: message.id });
  return html`<div class="tools" role="group" aria-label="Actions on this message">
    <button type="button" class="more" title="More" aria-label="More" aria-expanded="false" @click=${toggleTools}>${ICONS.more}</button>
    ${look.canReply ? toolView("Reply in a thread", ICONS.reply, reply) : nothing}
    ${message.text === "" ? nothing : toolView("Copy the text", ICONS.copy, () => void copy())}
    ${hasPreviews ? toolView("How it looks on other platforms", ICONS.eye, () => void preview()) : nothing}
    ${isOwn && !message.isCommand ? toolView("Edit", ICONS.edit, edit) : nothing}
    ${isOwn ? toolView("Delete", ICONS.trash, () => actions.erase(message)) : nothing}
  </div>`;
}

function toolView(label: string, icon: TemplateResult, run: () => void): TemplateResult {
  return html`<button type="button" title=${label} aria-label=${label} @click=${run}>${icon}</button>`;
}

/** Opens the tools on devices without hover; the next touch elsewhere closes them. */
function toggleTools({ currentTarget: more }: Event): void {
  if (!(more instanceof HTMLElement)) return;
  const toggle = () => more.setAttribute("aria-expanded", String(more.parentElement?.classList.toggle("open")));
  const onClick = ({ target }: Event) => {
    removeEventListener("click", onClick, true);
    const isAgain = target instanceof Node && more.contains(target);
    if (!isAgain && more.getAttribute("aria-expanded") === "true") toggle();
  };
  toggle();
  // Told before the button itself.
  addEventListener("click", onClick, true);
}

function deletedView(message: MessageRow, replies: readonly MessageRow[], actions: Actions): TemplateResult {
  return html`<article class="message deleted" data-id=${message.id}>
    <p class="hint">This message was deleted.</p>
    ${threadLink(message, replies, actions)}
  </article>`;
}

function namesOf(state: State): string[] {
  return [state.hello?.botName ?? "", ...[...state.people.values()].map((person) => person.name)].filter(Boolean);
}

/** One of eight colours, the same for a person every time. */
function hueOf(id: string): number {
  let sum = 0;
  for (const character of id) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 8;
  return sum;
}

const BUTTON_ICONS: Record<Button["action"], TemplateResult> = {
  stop: ICONS.stop,
  retry: ICONS.retry,
  continue: ICONS.continue,
  regenerate: ICONS.retry,
  show: ICONS.reply,
  explain: ICONS.search,
  approve: ICONS.check,
  always: ICONS.checks,
  deny: ICONS.close,
  rerun: ICONS.retry,
  good: ICONS.good,
  bad: ICONS.bad,
  again: ICONS.retry,
  vary: ICONS.vary,
  edit: ICONS.edit,
  upscale: ICONS.enlarge,
  delete: ICONS.trash,
};

/** Buttons that the bot put under its message. Judgements are small and stay pressed. */
function buttonsView(
  message: MessageRow,
  { isNewestAnswer }: MessageLook,
  state: State,
  actions: Actions,
): TemplateResult | typeof nothing {
  const buttons = message.buttons.filter(({ action }) => isNewestAnswer || action !== "regenerate");
  if (buttons.length === 0) return nothing;
  return html`<div class="buttons">
    ${buttons.map((button) => {
      const { action, label } = button;
      if (action === "good" || action === "bad") return judgementView(button, message, state, actions);
      return html`<button type="button" class=${action} @click=${() => press(button, message, actions)}>
        ${BUTTON_ICONS[action]}<span>${label}</span>
      </button>`;
    })}
  </div>${reasonView(message, state, actions)}`;
}

/** Asks why an answer is bad. That it is counts without a word. */
function reasonView(message: MessageRow, state: State, actions: Actions): TemplateResult | typeof nothing {
  const button = message.buttons.find(({ action }) => action === "bad");
  const isAsked = state.judgedId === message.id && message.judgements[state.speakerId] === "bad";
  if (button === undefined || !isAsked) return nothing;
  const send = (event: Event) => {
    event.preventDefault();
    const { value } = (event.currentTarget as HTMLFormElement).elements.namedItem("reason") as HTMLInputElement;
    if (value.trim() !== "") actions.press(message, button, value.trim());
  };
  return html`<form class="reason" @submit=${send}>
    <input name="reason" dir="auto" autocomplete="off" maxlength=${state.hello?.maxReasonLength ?? nothing}
      aria-label="What was wrong?" placeholder="What was wrong? (if you like)" />
    <button type="submit">Send</button>
  </form>`;
}

function judgementView(button: Button, message: MessageRow, state: State, actions: Actions): TemplateResult {
  const { action, label } = button;
  const isPressed = message.judgements[state.speakerId] === action;
  const judge = () => {
    if (!isPressed) actions.press(message, button);
  };
  return html`<button type="button" class="judgement ${action}" aria-label=${label} title=${label}
    aria-pressed=${isPressed} @click=${judge}>${BUTTON_ICONS[action]}</button>`;
}

function press(button: Button, message: MessageRow, actions: Actions): void {
  if (button.action === "edit") return void actions.editPicture(message, button.turnId);
  if (button.action !== "delete") return actions.press(message, button);
  const what = button.turnId.includes(".") ? "picture" : "answer";
  askToChoose(`Delete this ${what}?`, "It cannot be brought back.", [
    { label: "Delete", run: () => actions.press(message, button) },
  ]);
}

type Key = KeyboardEvent & { currentTarget: HTMLTextAreaElement };

/** A message as its author changes it, in its place. By keys or by its buttons: a phone has no Escape. */
function editView(message: MessageRow, actions: Actions): TemplateResult {
  const save = (field: HTMLTextAreaElement) => {
    if (field.value.trim() !== "") void leave(field, actions.edit(message, field.value));
  };
  const cancel = (field: HTMLTextAreaElement) => void leave(field, actions.cancelEdit());
  const onKeyDown = (event: Key) => {
    if (isForInputMethod(event)) return;
    const isSave = event.key === "Enter" && !event.shiftKey;
    if (!isSave && event.key !== "Escape") return;
    event.preventDefault();
    if (isSave) save(event.currentTarget);
    else cancel(event.currentTarget);
  };
  const withField = (run: (field: HTMLTextAreaElement) => void) => (event: Event) => {
    const field = (event.currentTarget as Element).closest(".editing")?.querySelector("textarea");
    if (field) run(field);
  };
  return html`<div class="editing">
    <textarea class="edit" dir="auto" aria-label="Edit the message" .value=${message.text} ${ref(begin)} @keydown=${onKeyDown}></textarea>
    <p class="edit-row">
      <span class="hint">Enter saves · Escape cancels</span>
      <button type="button" @click=${withField(cancel)}>Cancel</button>
      <button type="button" class="primary" @click=${withField(save)}>Save</button>
    </p>
  </div>`;
}

/**
 * The message may be out of sight, or out of the keyboard's reach. This runs as soon as it is drawn: a frame later it
 * would move the cursor of somebody who has begun to type.
 */
function begin(element: Element | undefined): void {
  if (!(element instanceof HTMLTextAreaElement)) return;
  queueMicrotask(() => {
    element.focus();
    element.setSelectionRange(element.value.length, element.value.length);
    element.scrollIntoView({ block: "nearest" });
  });
}

/** Gives the keyboard back to the composer that belongs to the message. */
async function leave(field: HTMLTextAreaElement, finished: Promise<boolean>): Promise<void> {
  const composer = field.closest(".pane")?.querySelector<HTMLTextAreaElement>(".composer textarea");
  if (await finished) composer?.focus();
}
