import { html, nothing, type TemplateResult } from "lit-html";
import { describeCount, describeMoment, describeMs, describePlace, describeTime } from "./format.ts";
import { ask, describeFailure } from "./requests.ts";
import type { OpenedMessage, Sight, Story } from "./wire.ts";

/** Details of a turn that were loaded on request. */
export interface Opened {
  sight?: Sight | string;
  messages?: OpenedMessage[] | string;
}

/** The unfolded parts of a page of stories. */
export interface Unfolded {
  open: Set<string>;
  /** The opened details, by the id of the turn. */
  opened: Map<string, Opened>;
  changed(): void;
}

/** A story that is unfolded by a press: what happened when, what people saw, and, on demand, what was said. */
export function toStory(story: Story, unfolded: Unfolded, showsSight: boolean): TemplateResult {
  const { id, reply, author, outcome = "", acceptedAt, model } = story;
  const isOpen = unfolded.open.has(id);
  const toggle = () => {
    if (!unfolded.open.delete(id)) {
      unfolded.open.add(id);
      if (showsSight) void fetchSight(story.turnId, unfolded);
    }
    unfolded.changed();
  };
  const isFine = ["complete", "stopped", "waiting", "refused"].includes(outcome);
  return html`
    <li class="story">
      <h2>
        <button class="fold" aria-expanded=${isOpen} aria-controls="story-${id}" @click=${toggle}>
          <span class="tag ${isFine ? "ok" : "bad"}">${outcome}</span>
          <span class="story-place">${describePlace(reply)}</span>
          <span class="hint">${author.name}</span>
          <span class="hint">${model}</span>
          <time class="hint" datetime=${new Date(acceptedAt).toISOString()}>${describeMoment(acceptedAt)}</time>
        </button>
      </h2>
      <div id="story-${id}" ?hidden=${!isOpen}>${isOpen ? toDetails(story, unfolded, showsSight) : nothing}</div>
    </li>
  `;
}

function toDetails(story: Story, unfolded: Unfolded, showsSight: boolean): TemplateResult {
  const { turnId, acceptedAt, steps } = story;
  const opened = unfolded.opened.get(turnId) ?? {};
  return html`
    <div class="story-body">
      ${showsSight ? toSight(opened.sight) : nothing}
      <h3>What happened when</h3>
      <ol class="steps">
        ${steps.map(
          ({ at, what, isBad }) => html`
            <li class=${isBad ? "bad" : ""}>
              <time class="hint" datetime=${new Date(at).toISOString()}>${describeTime(at)}</time>
              <span class="hint offset">+${describeMs(Math.max(0, at - acceptedAt))}</span>
              <span>${what}</span>
            </li>`,
        )}
      </ol>
      <h3>What the person saw</h3>
      <p>${describeSeen(story)}</p>
      ${story.note === undefined ? nothing : html`<blockquote>${story.note}</blockquote>`}
      ${toMessages(opened.messages, () => void fetchMessages(turnId, unfolded))}
      <p class="hint ids">Turn <code>${turnId}</code> · process <code>${story.process}</code></p>
    </div>
  `;
}

function describeSeen({ shown, written, messages, longestLagMs, firstVisibleAt, acceptedAt, retries }: Story): string {
  const first =
    firstVisibleAt === undefined
      ? "no text of the answer"
      : `the first text after ${describeMs(firstVisibleAt - acceptedAt)}`;
  const parts = [
    `They saw ${first}`,
    written > 0 && `${describeCount(Math.min(shown, written))} of ${describeCount(written)} characters`,
    messages > 0 && `in ${messages} ${messages === 1 ? "message" : "messages"}`,
    longestLagMs > 0 && `at most ${describeMs(longestLagMs)} behind the model`,
    retries > 0 && `after ${retries} ${retries === 1 ? "retry" : "retries"}`,
  ];
  return `${parts.filter(Boolean).join(", ")}.`;
}

function toSight(sight: Opened["sight"]): TemplateResult {
  if (sight === undefined) return html`<p class="hint">Looking …</p>`;
  if (typeof sight === "string") return html`<p class="hint">${sight}</p>`;
  const { prompt, completion, estimated } = sight.tokens;
  const options = Object.entries(sight.options).map(([name, value]) => `${name} ${String(value)}`);
  const rows: Array<[string, string]> = [
    ["Model", [sight.model, ...options].join(", ")],
    ["Persona", sight.persona],
    [
      "Messages",
      `${sight.shown} shown${sight.withFiles > 0 ? `, ${sight.withFiles} with files` : ""}${sight.fromChannel > 0 ? `, and ${sight.fromChannel} of the channel` : ""}`,
    ],
    [
      "Left out",
      [sight.dropped > 0 ? `${sight.dropped} that did not fit` : "", sight.hasOlder ? "what is older" : ""]
        .filter(Boolean)
        .join(", ") || "nothing",
    ],
    [
      "Tokens",
      `${describeCount(prompt)} read, ${describeCount(completion)} written${estimated > 0 ? ", estimated" : ""}`,
    ],
    ...sight.calls.map(({ name, tookMs, state }): [string, string] => [
      "Tool",
      `${name}, ${state}${tookMs === undefined ? "" : ` after ${describeMs(tookMs)}`}`,
    ]),
    ...sight.notices.map((notice): [string, string] => ["Said about it", notice]),
  ];
  return html`
    <h3>What the model was given</h3>
    <dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  `;
}

function toMessages(messages: Opened["messages"], open: () => void): TemplateResult {
  if (messages === undefined) {
    return html`
      <h3>What was said</h3>
      <p class="reveal">
        <button class="plain" @click=${open}>Open the messages</button>
        <span class="hint">The audit log notes that you did.</span>
      </p>`;
  }
  if (typeof messages === "string") return html`<h3>What was said</h3><p class="hint">${messages}</p>`;
  return html`
    <h3>What was said</h3>
    <ol class="messages">
      ${messages.map(
        ({ at, author, text, files, wasShown }) => html`
          <li class=${wasShown ? "" : "unshown"}>
            <p><strong>${author ?? "The bot"}</strong> <time class="hint" datetime=${new Date(at).toISOString()}>${describeMoment(at)}</time>
              ${wasShown || author === null ? nothing : html`<span class="hint">not shown to the model</span>`}</p>
            <pre tabindex="0">${text || "(no words)"}</pre>
            ${files.length === 0 ? nothing : html`<p class="hint">Files: ${files.join(", ")}</p>`}
          </li>`,
      )}
    </ol>
  `;
}

async function fetchSight(turnId: string, { opened, changed }: Unfolded): Promise<void> {
  const sight = await ask<Sight>(`turns/${turnId}/sight`).catch(describeFailure);
  opened.set(turnId, { ...opened.get(turnId), sight });
  changed();
}

async function fetchMessages(turnId: string, { opened, changed }: Unfolded): Promise<void> {
  const messages = await ask<OpenedMessage[]>(`turns/${turnId}/messages`, { method: "POST" }).catch(describeFailure);
  opened.set(turnId, { ...opened.get(turnId), messages });
  changed();
}
