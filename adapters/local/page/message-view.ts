import { html, nothing, type TemplateResult } from "lit-html";
import { guard } from "lit-html/directives/guard.js";
import { ref } from "lit-html/directives/ref.js";
import type { Actions } from "./actions.ts";
import { copyText } from "./body.ts";
import { askToChoose } from "./dialog.ts";
import { formatTime, formatWhole } from "./format.ts";
import { ICONS } from "./icons.ts";
import { isForInputMethod } from "./keys.ts";
import { describeOptions, readPrompt, toOptions } from "./picture-form.ts";
import { filesView } from "./pictures.ts";
import { showPreviews } from "./preview.ts";
import { describeProblem } from "./requests.ts";
import { nameOf, type Pending, pictureOf, type State, textsOf } from "./state.ts";
import type { Button, ImagineOptions, MessageRow } from "./wire.ts";
import { isWorking } from "./working.ts";

export interface MessageLook {
  /** True if the message directly follows another one from its author. It then shows no name and no avatar. */
  isGrouped: boolean;
  isWaiting: boolean;
  /** Only the newest answer can be regenerated. */
  isNewestAnswer: boolean;
}

export function messageView(message: MessageRow, look: MessageLook, state: State, actions: Actions): TemplateResult {
  const isEditing = state.editingId === message.id;
  const seen = message.files.filter(({ id }) => state.uncovered.has(id)).length;
  const isAskedWhy = state.judgedId === message.id;
  const { isGrouped, isWaiting, isNewestAnswer } = look;
  const depends = [message, isGrouped, isWaiting, isNewestAnswer, isEditing, isAskedWhy, seen];
  return html`${guard(
    depends,
    () => html`<article
      class="message ${message.isBot ? "bot" : ""} ${isDrawn(message) ? "drawn" : ""} ${isGrouped ? "grouped" : ""}"
      data-id=${message.id}
    >
      ${headView(message, state)}
      ${stepsView(message)} ${isEditing ? editView(message, actions) : bodyView(message, state)}
      ${isWaiting ? html`<span class="hint">waiting its turn</span>` : nothing}
      ${isWorking(message) ? html`<div class="working" aria-hidden="true"></div>` : nothing}
      ${filesView(message.files, state, actions)} ${buttonsView(message, look, state, actions)}
      ${toolsView(message, state, actions)}
    </article>`,
  )}`;
}

const STEP_ICONS = { done: ICONS.check, failed: ICONS.close, running: ICONS.more };

function stepsView({ steps, stepsLine }: MessageRow): TemplateResult | typeof nothing {
  if (steps.length === 0) return nothing;
  return html`<details class="steps">
    <summary>${stepsLine}</summary>
    <ul>
      ${steps.map(({ title, state }) => html`<li class=${state}>${STEP_ICONS[state]}<bdi>${title}</bdi>${state === "failed" ? html` <small>failed</small>` : nothing}</li>`)}
    </ul>
  </details>`;
}

/** True for an image from the bot. Its buttons are below the image. */
function isDrawn({ buttons }: MessageRow): boolean {
  return buttons.some(({ action }) => action === "again");
}

/** Shows a message that the server does not have: one that is being sent, or that could not be sent. */
export function pendingView(pending: Pending, isGrouped: boolean, state: State, actions: Actions): TemplateResult {
  const { nonce, problem, status } = pending;
  const failure = html`<p class="problem" role="alert">
    <span>Not sent. ${problem}</span>
    <button type="button" @click=${() => actions.again(nonce)}>Send again</button>
    <button type="button" @click=${() => actions.rewrite(nonce)}>Edit</button>
    <button type="button" @click=${() => actions.discard(nonce)}>Discard</button>
  </p>`;
  return html`<article class="message pending ${status} ${isGrouped ? "grouped" : ""}">
    ${headView({ isBot: false, createdAt: pending.createdAt }, state)}
    ${pending.text.startsWith("/") ? commandView(pending.text, optionsOf(pending), state) : textView(pending.text)}
    ${filesView(pending.files, state, actions)} ${status === "failed" ? failure : nothing}
    ${status === "waiting" ? html`<p class="hint">Waiting for the connection…</p>` : nothing}
  </article>`;
}

function headView({ isBot, createdAt }: Pick<MessageRow, "isBot" | "createdAt">, state: State): TemplateResult {
  return html`<div class="avatar" aria-hidden="true">${isBot ? nothing : ICONS.person}</div>
    <header>
      <b>${nameOf(state, isBot)}</b>
      <time datetime=${new Date(createdAt).toISOString()} title=${formatWhole(createdAt)}>${formatTime(createdAt)}</time>
    </header>`;
}

function bodyView(message: MessageRow, state: State): TemplateResult {
  if (message.isCommand) return commandView(message.text, message.options, state);
  const content = { text: message.text, isStreaming: message.isStreaming };
  return html`<message-body .content=${content}></message-body>
    ${message.editedAt === null ? nothing : html`<span class="hint" title=${formatWhole(message.editedAt)}>edited</span>`}`;
}

/** Shows a request for an image as its description, with its options next to it. Shows any other command as typed. */
function commandView(text: string, options: ImagineOptions, state: State): TemplateResult {
  const prompt = readPrompt(text) ?? "";
  if (prompt === "") return html`<p class="command"><code>${text}</code></p>`;
  const choices = describeOptions(options);
  const basis = options.basis === undefined ? undefined : pictureOf(state, options.basis);
  return html`<div class="order">
    ${basis === undefined ? nothing : html`<img src="/local/files/${basis.id}" alt="The image to change" title="The image to change" />`}
    <p>${ICONS.picture}<span class="unseen">Draw:</span> <bdi>${prompt}</bdi></p>
    ${choices === "" ? nothing : html`<small class="hint">${choices}</small>`}
  </div>`;
}

function textView(text: string): TemplateResult {
  return html`<message-body .content=${{ text, isStreaming: false }}></message-body>`;
}

function optionsOf({ picture }: Pending): ImagineOptions {
  return picture === undefined ? {} : toOptions(picture);
}

function toolsView(message: MessageRow, state: State, actions: Actions): TemplateResult | typeof nothing {
  const { text, isBot, isStreaming } = message;
  if (isStreaming || (text === "" && isBot)) return nothing;
  const copy = async () => {
    const texts = textsOf(state, message);
    const copied = texts.length === 1 ? "Copied." : `Copied the whole answer, ${texts.length} messages.`;
    actions.notice((await copyText(texts.join("\n\n"))) ? copied : "Your browser blocked copying.");
  };
  const hasPreviews = state.hello?.hasPreviews === true && isBot;
  const preview = async () => {
    const { botName = "Palaver" } = state.hello ?? {};
    await showPreviews(textsOf(state, message).join("\n\n"), botName).catch((error) =>
      actions.notice(describeProblem(error)),
    );
  };
  const edit = () => actions.change((state) => void (state.editingId = message.id));
  return html`<div class="tools" role="group" aria-label="Actions on this message">
    <button type="button" class="more" title="More" aria-label="More" aria-expanded="false" @click=${toggleTools}>${ICONS.more}</button>
    ${text === "" ? nothing : toolView("Copy the text", ICONS.copy, () => void copy())}
    ${hasPreviews ? toolView("How it looks on other platforms", ICONS.eye, () => void preview()) : nothing}
    ${isBot || message.isCommand ? nothing : toolView("Edit", ICONS.edit, edit)}
    ${isBot ? nothing : toolView("Delete", ICONS.trash, () => actions.erase(message))}
  </div>`;
}

function toolView(label: string, icon: TemplateResult, run: () => void): TemplateResult {
  return html`<button type="button" title=${label} aria-label=${label} @click=${run}>${icon}</button>`;
}

/** Opens or closes a message's tools on devices without hover. A touch elsewhere also closes them. */
function toggleTools({ currentTarget: more }: Event): void {
  if (!(more instanceof HTMLElement)) return;
  const toggle = () => more.setAttribute("aria-expanded", String(more.parentElement?.classList.toggle("open")));
  const onClick = ({ target }: Event) => {
    removeEventListener("click", onClick, true);
    const isAgain = target instanceof Node && more.contains(target);
    if (!isAgain && more.getAttribute("aria-expanded") === "true") toggle();
  };
  toggle();
  // Runs before the button's own listener.
  addEventListener("click", onClick, true);
}

const BUTTON_ICONS: Record<Button["action"], TemplateResult> = {
  stop: ICONS.stop,
  retry: ICONS.retry,
  continue: ICONS.continue,
  regenerate: ICONS.retry,
  show: ICONS.forward,
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
  schedule: ICONS.check,
  reschedule: ICONS.edit,
  unschedule: ICONS.trash,
  pause: ICONS.pause,
  resume: ICONS.continue,
};

function buttonsView(
  message: MessageRow,
  { isNewestAnswer }: MessageLook,
  state: State,
  actions: Actions,
): TemplateResult | typeof nothing {
  const { isStreaming, buttons } = message;
  // A growing answer can only be stopped. All other buttons need the complete answer.
  const offered = isStreaming ? buttons.filter(({ action }) => action === "stop") : buttons;
  const {
    pages = [],
    judgements = [],
    acts = [],
  } = Object.groupBy(offered, ({ action }) => {
    if (action === "show") return "pages";
    return action === "good" || action === "bad" ? "judgements" : "acts";
  });
  const shown = acts.filter(({ action }) => isNewestAnswer || action !== "regenerate");
  if (pages.length + judgements.length + shown.length === 0) return nothing;
  return html`<div class="buttons">
    ${pages.length === 0 ? nothing : pagerView(pages, message, actions)}
    ${shown.map(
      (button) => html`<button type="button" class=${button.action} @click=${() => press(button, message, actions)}>
        ${BUTTON_ICONS[button.action]}<span>${button.label}</span>
      </button>`,
    )}
    ${judgements.length === 0 ? nothing : html`<span class="judgements">${judgements.map((each) => judgementView(each, message, actions))}</span>`}
  </div>${reasonView(message, state, actions)}`;
}

/** Switches between the versions of an answer. The buttons' labels contain the number: "‹ 2/3" and "›". */
function pagerView(pages: readonly Button[], message: MessageRow, actions: Actions): TemplateResult {
  const label = pages.map((each) => each.label).join("");
  const turn = (name: string, mark: string, icon: TemplateResult) => {
    const button = pages.find((each) => each.label.includes(mark));
    const go = () => button && actions.press(message, button);
    return html`<button type="button" class="show" aria-label=${name} title=${name} ?disabled=${button === undefined} @click=${go}>${icon}</button>`;
  };
  return html`<span class="pager" role="group" aria-label="Answers">
    ${turn("Previous answer", "‹", ICONS.back)}<span>${/\d+\/\d+/.exec(label)?.[0]}</span>${turn("Next answer", "›", ICONS.forward)}
  </span>`;
}

/** Asks why an answer is bad. The rating counts even without a reason. */
function reasonView(message: MessageRow, state: State, actions: Actions): TemplateResult | typeof nothing {
  const button = message.buttons.find(({ action }) => action === "bad");
  const isAsked = state.judgedId === message.id && message.judgement === "bad";
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

function judgementView(button: Button, message: MessageRow, actions: Actions): TemplateResult {
  const { action, label } = button;
  const isPressed = message.judgement === action;
  const judge = () => {
    if (!isPressed) actions.press(message, button);
  };
  return html`<button type="button" class="judgement ${action}" aria-label=${label} title=${label}
    aria-pressed=${isPressed} @click=${judge}>${BUTTON_ICONS[action]}</button>`;
}

function press(button: Button, message: MessageRow, actions: Actions): void {
  if (button.action === "edit") return void actions.editPicture(message, button.turnId);
  if (button.action === "reschedule") return void actions.changeSchedule(message, button);
  if (button.action !== "delete") return actions.press(message, button);
  const what = button.turnId.includes(".") ? "picture" : "answer";
  askToChoose(`Delete this ${what}?`, "This cannot be undone.", [
    { label: "Delete", run: () => actions.press(message, button) },
  ]);
}

type Key = KeyboardEvent & { currentTarget: HTMLTextAreaElement };

/** Lets the author edit a message in place. Has buttons in addition to keys, because phones have no Escape key. */
function editView(message: MessageRow, actions: Actions): TemplateResult {
  const save = (field: HTMLTextAreaElement) => {
    if (field.value.trim() !== "") void leave(actions.edit(message, field.value));
  };
  const cancel = () => void leave(actions.cancelEdit());
  const onKeyDown = (event: Key) => {
    if (isForInputMethod(event)) return;
    const isSave = event.key === "Enter" && !event.shiftKey;
    if (!isSave && event.key !== "Escape") return;
    event.preventDefault();
    if (isSave) save(event.currentTarget);
    else cancel();
  };
  const onSave = ({ currentTarget }: Event & { currentTarget: HTMLElement }) => {
    const field = currentTarget.closest(".editing")?.querySelector("textarea");
    if (field) save(field);
  };
  return html`<div class="editing">
    <textarea class="edit" dir="auto" aria-label="Edit the message" .value=${message.text} ${ref(begin)} @keydown=${onKeyDown}></textarea>
    <p class="edit-row">
      <span class="hint">Enter saves · Escape cancels</span>
      <button type="button" @click=${cancel}>Cancel</button>
      <button type="button" class="primary" @click=${onSave}>Save</button>
    </p>
  </div>`;
}

/**
 * Focuses the text field, which can be out of view. A microtask does this as soon as the message is drawn: a frame
 * later, the focus would move the cursor while the person is typing.
 */
function begin(element: Element | undefined): void {
  if (!(element instanceof HTMLTextAreaElement)) return;
  queueMicrotask(() => {
    element.focus();
    element.setSelectionRange(element.value.length, element.value.length);
    element.scrollIntoView({ block: "nearest" });
  });
}

/** Moves the focus back to the composer if `finished` resolves to true. */
async function leave(finished: Promise<boolean>): Promise<void> {
  const composer = document.querySelector<HTMLTextAreaElement>(".composer textarea");
  if (await finished) composer?.focus();
}
